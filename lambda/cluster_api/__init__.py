"""The function that speaks with the cluster of Kubernetes."""
