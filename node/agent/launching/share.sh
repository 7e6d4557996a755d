#!/bin/sh
# Runs mpirun, or its daemon, and stays beside it: a daemon closes its output, and this shell keeps the way to the node's log for the
# processes of the training (process.sh).
if ! command -v "$1" >/dev/null; then
  echo "trainyard: there is no $1 here"
  exit 127
fi
echo "$$" >"$TRAINYARD_LAUNCHER/shell"
"$@"
code=$?
exit "$code"
