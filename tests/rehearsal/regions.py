"""The regions of the deployment that rehearsed jobs, grids and searches share."""

from __future__ import annotations

REGIONS = [
    {"region": "eu-central-1", "cidr": "10.70.0.0/16"},
    {"region": "us-east-1", "cidr": "10.71.0.0/16"},
    {"region": "ap-south-1"},
]
"""Home, one more that trains, and one for the grid alone."""
