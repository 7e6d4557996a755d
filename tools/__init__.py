"""Tools of the Makefile: writers of generated pages, diagrams, schemas and snapshots, and the summary of `make test`.

Only tests import from here."""
