"""What may be ended, how a job's instances are ended, and how it is proven that nothing of the job runs or can appear."""
