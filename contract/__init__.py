"""Holds everything that two parts of Trainyard must spell the same way; needs only the standard library of Python 3.10."""
