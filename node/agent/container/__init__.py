"""The job's container: the image is pulled while other things are prepared, and docker runs it."""
