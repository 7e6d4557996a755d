"""The account and the tables of the grid's tests."""
