"""Tests of the function that makes the roles of AWS's own services."""
