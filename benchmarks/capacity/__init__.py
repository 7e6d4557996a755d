"""Load and time: what waiting for capacity costs, and a thousand jobs at once."""
