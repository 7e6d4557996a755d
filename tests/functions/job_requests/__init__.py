"""The reading of a request, which Admit and a person's own computer share."""
