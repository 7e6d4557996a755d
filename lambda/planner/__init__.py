"""Plan, the Grid machine's first function: reads a manifest, checks every line of it, and writes the plan for the children.

Beside the rights of a check its role may write, below `grids/`, the facts, the lines and `grid.json`. It may neither create a training
nor pass a role.
"""
