"""The local AWS: one account on this computer. It imports nothing of what is deployed in it."""
