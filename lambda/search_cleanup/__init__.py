"""The cleanup of searches: stops the grid of a round whose search has ended, and reports what there is."""
