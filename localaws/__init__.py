"""The local AWS: one account on this computer, which imports nothing of what is deployed in it."""
