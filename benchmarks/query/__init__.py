"""A query in the place of a manifest, beside the same manifest."""
