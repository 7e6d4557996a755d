"""Admit: turns a person's request into a job, or says everything that is wrong with it."""
