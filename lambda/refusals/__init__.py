"""What the functions that refuse requests share: S3 addresses, fields and their limits, entries of archives, wording."""
