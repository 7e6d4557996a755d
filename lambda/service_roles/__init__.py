"""Makes the service-linked roles that an account lacks before Batch and ECS are first used in it."""
