"""Looks up the availability zones of a region while its stack is deployed."""
