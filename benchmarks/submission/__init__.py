"""From the start of a process to an accepted CreateTrainingJob: the grid's child beside the SageMaker Python SDK."""
