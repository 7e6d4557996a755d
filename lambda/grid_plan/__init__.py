"""Plan, the Grid machine's first function: reads a manifest, checks every line of it, and writes the plan for the children.

Its role needs exactly this: in the home bucket, to read `uploads/`, `grids/` and the note that closes admission, to write below
`grids/` the facts, the lines and `grid.json`, and to list; in the data buckets, to read and to list; in the buckets of bytes, to list
(the region of a bucket, and whether there is anything under an address); ECR's BatchGetImage on what trainings may pull, and
DescribeImages on the platform's repository in home; the Price List's GetProducts. It may neither create a training nor pass a role.
"""
