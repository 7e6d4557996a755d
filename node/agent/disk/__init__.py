"""The disks of a node: which of them holds the job's work folder, and how long its room lasts."""
