"""Tests of Terminate."""
