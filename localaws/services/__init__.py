"""What moto lacks, a file a service, a function a gap, each with its reason; nothing here is known to the product."""
