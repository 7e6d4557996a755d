"""Checks permissions: puts recorded calls to a simulator of IAM."""
