"""The Build machine's function: turns a request for an image into an order for CodeBuild, and collects the result."""
