"""Asks git hosts for the heads of branches, and has each new commit built, once."""
