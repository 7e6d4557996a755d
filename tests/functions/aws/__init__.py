"""Tests of the functions' calls to AWS."""
