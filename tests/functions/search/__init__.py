"""Tests of searches, with the account that they share."""
