"""The local AWS: one account on this computer, which knows nothing of what is deployed in it."""
