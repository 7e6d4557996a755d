"""File systems that the job mounts."""
