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
# The words of the command are in a file, each quoted: mpirun takes some of them for its own.
eval "set -- $(cat "$TRAINYARD_LAUNCHER/command")"
"$@"
code=$?
echo "$code" >"$TRAINYARD_LAUNCHER/codes/.$RANK" && mv "$TRAINYARD_LAUNCHER/codes/.$RANK" "$TRAINYARD_LAUNCHER/codes/$RANK"

# What the command left behind in its group, which mpirun makes for each process, ends with it: on the machine's own image it would outlive
# the agent, and Hydra's mpirun would wait for it. After a good end it may write for two more seconds.
find_rest() { # sets `rest`: a subshell would find itself
  rest=''
  for entry in /proc/[0-9]*; do
    { read -r line <"$entry/stat"; } 2>/dev/null || continue
    state=${line##*) } pid=${entry#/proc/}
    group=${state#* * }
    if [ "${group%% *}" = $$ ] && [ "$pid" != $$ ] && [ "${state%% *}" != Z ]; then rest="$rest $pid"; fi
  done
}
for _ in 1 2; do
  find_rest
  if [ "$code" != 0 ] || [ -z "$rest" ]; then break; fi
  sleep 1
done
find_rest
for pid in $rest; do kill -KILL "$pid" 2>/dev/null; done
exit "$code"
