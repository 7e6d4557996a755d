"""Makes an image for nodes: one machine installs requirements once, and not every node of every attempt (docs/guides/own-image.md)."""
