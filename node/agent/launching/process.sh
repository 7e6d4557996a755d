#!/bin/sh
# Runs one process of a training under mpirun, whose name for it depends on whose mpirun it is. Its output goes to its own node's log, and
# its exit code to a file: mpirun ends with 0 where it lost the connection to a node.
RANK=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
WORLD_SIZE=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-1}}
LOCAL_RANK=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-0}}
export RANK WORLD_SIZE LOCAL_RANK
# Signals are sent to the command too; this shell stays to see its end.
trap : HUP INT QUIT TERM USR1 USR2
read -r shell <"$TRAINYARD_LAUNCHER/shell"
if [ -p "/proc/$shell/fd/1" ]; then exec >"/proc/$shell/fd/1" 2>&1; fi
# The words of the command are in a file, each quoted: mpirun takes some of them for its own. An image's arguments follow.
eval "set -- $(cat "$TRAINYARD_LAUNCHER/command")"' "$@"'
"$@"
code=$?
echo "$code" >"$TRAINYARD_LAUNCHER/codes/.$RANK" && mv "$TRAINYARD_LAUNCHER/codes/.$RANK" "$TRAINYARD_LAUNCHER/codes/$RANK"
exit "$code"
