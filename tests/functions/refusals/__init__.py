"""The words of refusals, which functions share."""
