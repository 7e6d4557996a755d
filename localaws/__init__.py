"""The local AWS: one account on this computer. It imports nothing of the product that is deployed in it."""
