"""Code from git: reads which commit is meant, and fetches it from its host in a process of its own."""
