"""How long pages of runs take to write, and how large they are."""
