"""Tests of the function that closes the default security group of a network."""
