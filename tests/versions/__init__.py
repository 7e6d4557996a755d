"""Another version is deployed under running jobs, and this one again."""
