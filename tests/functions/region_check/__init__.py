"""Tests of the function that rejects removing a region while its stack exists."""
