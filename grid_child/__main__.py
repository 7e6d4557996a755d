"""`python -m grid_child`: the container's entry point."""

from __future__ import annotations

import os
import signal
import sys
import time

from grid_child.loading import loading
from grid_child.waits import Waits

if __name__ == "__main__":
    waits = Waits(time)
    # Before the imports that take long: a first process has no handler of its own, and the kernel drops SIGTERM without one.
    signal.signal(signal.SIGTERM, waits.called)
    with loading():
        from grid_child.main import main

    sys.exit(main(os.environ, waits=waits))
