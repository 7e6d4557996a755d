"""Drain: before a destroy deletes anything, closes admission, stops every execution and ends every instance."""
