"""Says what stands against a job: Admit asks about that of an execution, Plan about those of a grid's lines.

The line, step by step: `questions`, `lookups` (which alone asks AWS, with the files that it calls), `resolve`, `ladder`, `role_ladder` or
`reservations`, `volumes`, `money`, and `judge`, which calls them.
"""
