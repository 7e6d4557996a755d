"""Admit: turns a person's request into a job, or says everything that is wrong with it.

The line, step by step: `reading`, `lookups` (which alone asks AWS, with the files that it calls), `resolve`, `ladder` or `reservations`,
`volumes`, `money`, the verdict in `policy`, `job`. `handler` writes the job down, and `output` describes it.
"""
