"""Measures the network between the nodes of an attempt before its training, and tells which machine slows it."""
