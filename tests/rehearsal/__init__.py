"""Tests on the local AWS, with its real processes."""
