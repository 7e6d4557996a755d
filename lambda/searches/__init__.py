"""Searches: the input, the study that is rebuilt from records, the decision whether to go on, and the report."""
