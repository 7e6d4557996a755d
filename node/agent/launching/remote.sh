#!/bin/sh
# Stands in for ssh: [OPTION]... HOST COMMAND... as rank 0's mpirun calls it. The agent has the command run on HOST's node, as that node's
# training, and writes its exit code down here. No key, no listener: what goes between the nodes is under the attempt's own prefix in S3.
folder=${0%/*}
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
rank='' number=0
while read -r address; do
  [ "$address" != "$host" ] || rank=$number
  number=$((number + 1))
done <"$folder/addresses"
case $rank in
'') echo "trainyard: $host is no node of this attempt" >&2 && exit 255 ;;
0) exec /bin/sh -c "$*" ;;
esac
printf '%s' "$*" >"$folder/commands/.$rank" && mv "$folder/commands/.$rank" "$folder/commands/$rank" || exit 255
looks=0
until [ -s "$folder/ends/$rank" ]; do # one of these runs for every other node: after a minute each starts a process now and then
  [ -d "$folder/ends" ] || exit 255 # the training is over, and its mpirun with it
  sleep "$((looks < 60 ? 1 : 5))"
  looks=$((looks + 1))
done
read -r code <"$folder/ends/$rank"
exit "$code"
