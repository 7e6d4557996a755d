"""Runs the same templates, machines, functions and node agent on one computer: moto and `gaps` do what AWS would do."""
