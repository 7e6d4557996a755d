"""Tests of the functions: a folder for each package of lambda/, and of what several do together."""
