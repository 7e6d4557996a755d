"""Runs the command line: `python -m trainyard --help`, or `bin/trainyard` from any folder."""

from __future__ import annotations

from trainyard.app import app

if __name__ == "__main__":
    app(prog_name="trainyard")
