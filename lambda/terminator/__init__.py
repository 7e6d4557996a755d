"""Terminate: ends every instance of the job, however the attempt ended."""
