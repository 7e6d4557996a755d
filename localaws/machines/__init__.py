"""EC2's machines: each is a process group with its own folder, address and metadata."""
