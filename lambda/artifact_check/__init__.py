"""Sync: proves that what the nodes committed is in S3, and lists it."""
