"""Tests of the function that speaks with the cluster of Kubernetes."""
