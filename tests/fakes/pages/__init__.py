"""Facts of runs of every kind, of which tests, the benchmark and the screenshots write pages."""
