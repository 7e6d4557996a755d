"""The same templates, machines, functions and node agent on one computer: what AWS would do is done by moto and `gaps`."""
