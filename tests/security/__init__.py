"""Tests of what the deployment may do and leaves open: an IAM simulator and four scanners, offline."""
