"""EC2's machines: a process group each, with its own folder, address and metadata."""
