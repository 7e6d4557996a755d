"""What the Makefile runs: writers of generated pages, diagrams, schemas and snapshots, and the last words of `make test`.

Only tests import from here."""
