"""Admit: turns a person's request into a job, or says everything that is wrong with it.

`lookups` asks AWS and a git host, `policy` decides by what the room `job_checks` finds, and `job` is what an accepted request becomes.
`handler` writes the job down, and `output` describes it.
"""
