"""How long a rehearsal takes, and with what."""
