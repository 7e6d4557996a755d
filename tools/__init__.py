"""Tools of the Makefile: writers of generated pages, diagrams and schemas, and the summary of `make test`.

Only tests import from here."""
