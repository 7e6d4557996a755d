"""Shared by the functions that refuse requests: S3 addresses, fields and their limits, entries of archives, wording."""
