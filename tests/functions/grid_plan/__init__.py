"""Tests of Plan, with the account and the tables of refusals that they share."""
