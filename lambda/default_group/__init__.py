"""Takes every rule out of a network's default security group while the network's stack is deployed."""
