"""Adds what moto lacks: a file per service, a function per gap, each with its reason."""
