"""Checks the health of the machine, before the training and once its command has failed."""
