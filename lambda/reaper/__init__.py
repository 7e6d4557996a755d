"""The reaper: on a clock, ends what the other layers left behind, and says so."""
