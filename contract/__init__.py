"""The shared words: everything that two parts of Trainyard must spell the same way, standard library only, Python 3.10."""
