"""Own images: a deploy has the platform's own images built by the Build machine, and waits for them."""
