"""Makes an image for nodes: requirements are installed once, on one machine, and not on every node of every attempt (docs/own-image.md)."""
