"""The reaper: ends, every five minutes, what the other layers left behind, and sends a message."""
