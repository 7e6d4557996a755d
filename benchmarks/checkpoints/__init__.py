"""Checkpoints to S3 and back, beside s5cmd and the AWS command line."""
