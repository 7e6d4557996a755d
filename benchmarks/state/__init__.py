"""The control plane of jobs: what eight hours of four nodes cost, and whether a thousand jobs are looked at in time."""
