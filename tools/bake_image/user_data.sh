#!/bin/bash
# Installs requirements on the machine that an image is made of, cleans it, and powers it off. Whatever happens, it powers off.
#
# Given by the lines before this one: BAKE_MARK (stands at the start of every line for the console), BAKE_DIGEST, BAKE_HASHES (`yes`
# if pip must check hashes), BAKE_LIMIT_MIN (whole minutes until the power goes), BAKE_REQUIREMENTS (the whole file).
# TRAINYARD_ROOT stands before every absolute path; it is empty on a real machine.
set -euo pipefail
root=${TRAINYARD_ROOT:-}
requirements=$root/run/trainyard-requirements.txt
output=$root/run/trainyard-bake.txt

# EC2 shows the console from outside, without any right of the machine. cloud-init keeps the standard output for its log alone on some images.
say() { echo "$BAKE_MARK $*" >> "$root/dev/console" 2> /dev/null || echo "$BAKE_MARK $*"; }

# Forced: services are killed and not stopped, so that cloud-init has no time to write again what was removed. File systems are
# unmounted all the same.
leave() {
  trap - EXIT
  sync
  systemctl poweroff --force || systemctl poweroff --force --force
}
failed() {
  say "failed: $1"
  leave
  exit 1
}
trap 'failed "the script ended with code $? before its end"' EXIT

# A machine that hangs costs money until its power goes. It is in /run, so no image has it.
shutdown -P "+$BAKE_LIMIT_MIN" || say "no timer powers this machine off"

# The same choice as in node/user_data.sh: what this Python has is what a node's job finds.
python=
for candidate in "$root/opt/pytorch/bin/python" "$root"/opt/aws_neuronx_venv_{pytorch,torch_neuronx}_[0-9]*/bin/python \
  "$root"/usr/bin/python3.{14,13,12,11,10} python3.{14,13,12,11,10} python3; do
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2> /dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || failed "no Python 3.10 or later on this image: use a deep-learning AMI, or one with python3.10 to python3.14"

mkdir -p "$root/run"
printf '%s' "$BAKE_REQUIREMENTS" > "$requirements"
# Debian's own Python takes no packages of pip without the second one.
export PIP_NO_INPUT=1 PIP_BREAK_SYSTEM_PACKAGES=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
export HOME="${HOME:-$root/root}"
hashes=()
[ "$BAKE_HASHES" != yes ] || hashes=(--require-hashes)

# The network can be later than user data: about two minutes of tries.
say "installs with $python"
installed=
for pause in 5 10 20 30 60 0; do
  if "$python" -m pip install --progress-bar off "${hashes[@]}" -r "$requirements" > "$output" 2>&1; then
    installed=yes
    break
  fi
  # A download that was cut off may go better; a version that does not exist will not.
  grep -qiE 'connection|timed out|temporary failure|name resolution' "$output" || break
  sleep "$pause"
done
if [ -z "$installed" ]; then
  tail -n 15 "$output" | while IFS= read -r line; do say "pip: $line"; done
  failed "the requirements cannot be installed"
fi
# What a node does with the same file. --no-index: it passes only if the image alone satisfies every line.
"$python" -m pip install --no-index "${hashes[@]}" -r "$requirements" > "$output" 2>&1 ||
  failed "$python does not see what was installed: $(tail -n 1 "$output")"

say "cleans"
rm -f "$requirements" "$output"
cloud-init clean --logs > /dev/null 2>&1 || true
rm -rf "$root"/var/lib/cloud/* "$root"/var/lib/amazon/ssm/* "$root"/var/lib/dhcp/* "$root"/var/lib/dhclient/* "$root"/root/.cache
rm -f "$root"/etc/ssh/ssh_host_* "$root"/root/.ssh/authorized_keys "$root"/home/*/.ssh/authorized_keys
rm -f "$root"/root/.*_history "$root"/home/*/.*_history "$root"/var/lib/systemd/random-seed "$root"/var/lib/dbus/machine-id
rm -rf "$root"/tmp/* "$root"/var/tmp/*
find "$root/var/log" -type f -delete
: > "$root/etc/machine-id" # empty: the first boot of each node writes its own
# Services that still run may begin a new log; these two nothing writes again.
left=$(find "$root"/etc/ssh -name 'ssh_host_*'; find "$root"/var/lib/cloud -name 'user-data*')
[ -z "$left" ] || failed "could not be cleaned: $left"
trap - EXIT
say "baked $BAKE_DIGEST"
leave
