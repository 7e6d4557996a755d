"""Loads and long times on the fake AWS: jobs that wait for weeks, a thousand that wait, a thousand that train."""
