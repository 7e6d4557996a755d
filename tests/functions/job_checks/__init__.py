"""Tests of the checks of a job that need no account: adapters of EFA, what is asked once."""
