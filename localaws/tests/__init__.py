"""Tests of the local AWS: of its pure parts, and with its real processes."""
