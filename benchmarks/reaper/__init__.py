"""A pass of the reaper over a large account, beside Cloud Custodian with the same rule."""
