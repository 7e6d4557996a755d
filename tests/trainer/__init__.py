"""Tests of the module that trainers may copy."""
