#!/bin/bash
# The first code that runs on a node, the same for every job. Whatever happens from here on, the machine powers off.
#
# Given by the lines before this one: TRAINYARD_AGENT (s3://bucket/key of the agent's archive), TRAINYARD_AGENT_SHA256,
# TRAINYARD_HOME_REGION, TRAINYARD_HOME_BUCKET, TRAINYARD_TABLE (of the home region), TRAINYARD_NODE_ROLE (id of the node's role),
# TRAINYARD_POWER_OFF_S (whole seconds until the power goes, unless the agent learns a deadline). TRAINYARD_ROOT stands before every absolute path; it is empty on a real machine.
set -euo pipefail
root=${TRAINYARD_ROOT:-}
home=$root/opt/trainyard
units=$root/etc/systemd/system

say() { echo "trainyard: $*" >&2; }

# A shutdown ends this script with the rest of cloud-init, so a service powers the machine off. The direct call is for a service
# manager that does not answer.
leave() {
  trap - EXIT
  say "powering off"
  systemctl start --no-block trainyard-power-off.service || true
  "$home/power-off" || systemctl poweroff --force --force
}
trap leave EXIT

mkdir -p "$home" "$units" "$root/run"

cat > "$home/power-off" <<SCRIPT
#!/bin/bash
# Powers off the soft way, and the hard way when that hangs: a unit that does not stop may hold the soft way for minutes.
timeout 20 systemctl poweroff
sleep 60
timeout 20 systemctl poweroff --force --force
echo o > "$root/proc/sysrq-trigger"
SCRIPT

cat > "$home/arm-power-off" <<SCRIPT
#!/bin/bash
# arm-power-off EPOCH: the machine powers off at that second, also after a reboot. A time in the past means now.
set -euo pipefail
soonest=\$((\$(date +%s) + 2))
at=\$(date -u -d "@\$((\$1 > soonest ? \$1 : soonest))" '+%Y-%m-%d %H:%M:%S UTC')
cat > "$units/trainyard-power-off.timer.new" <<TIMER
[Unit]
Description=Trainyard: power off at \$at
[Timer]
OnCalendar=\$at
Persistent=true
AccuracySec=1s
[Install]
WantedBy=timers.target
TIMER
mv "$units/trainyard-power-off.timer.new" "$units/trainyard-power-off.timer"
systemctl daemon-reload
systemctl enable trainyard-power-off.timer
systemctl restart trainyard-power-off.timer
SCRIPT
chmod 755 "$home/power-off" "$home/arm-power-off"

# Without default dependencies a shutdown does not stop this service, so that it can force the power off when the soft way hangs.
cat > "$units/trainyard-power-off.service" <<UNIT
[Unit]
Description=Trainyard: power off
DefaultDependencies=no
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=$home/power-off
UNIT
"$home/arm-power-off" $(($(date +%s) + ${TRAINYARD_POWER_OFF_S:-2700}))

# User data runs only at the first boot, so a node that rebooted would idle until its timer. Its attempt counts it as lost, so
# every later boot powers off at once. /run is empty after a reboot: by that a boot knows that it is not the first.
touch "$root/run/trainyard-first-boot"
cat > "$units/trainyard-later-boot.service" <<UNIT
[Unit]
Description=Trainyard: power off after a reboot
ConditionPathExists=!$root/run/trainyard-first-boot
[Service]
Type=oneshot
ExecStart=/bin/systemctl start --no-block trainyard-power-off.service
[Install]
WantedBy=multi-user.target
UNIT
systemctl enable trainyard-later-boot.service || say "a reboot will not end this node before its timer does"

# From here on everything may fail.
TRAINYARD_BOOTED=$(date +%s.%N)
export TRAINYARD_BOOTED TRAINYARD_ROOT="$root" TRAINYARD_HOME_REGION TRAINYARD_HOME_BUCKET TRAINYARD_TABLE TRAINYARD_NODE_ROLE
export HOME="${HOME:-$root/root}" # cloud-init sets none, and trainers cache under it

python=
for candidate in "$root/opt/pytorch/bin/python" "$root"/opt/aws_neuronx_venv_{pytorch,torch_neuronx}_[0-9]*/bin/python \
  "$root"/usr/bin/python3.{14,13,12,11,10} python3.{14,13,12,11,10} python3; do
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2> /dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  say "no Python 3.10 or later on this image: use a deep-learning AMI, or one with python3.10 to python3.14"
  exit 1
fi

# The network can be later than user data: about five minutes of tries.
fetched=
for pause in 1 2 3 5 10 15 30 30 30 30 30 30 30 30 0; do
  if timeout 60 aws s3 cp --only-show-errors --region "$TRAINYARD_HOME_REGION" "$TRAINYARD_AGENT" "$home/agent.zip"; then
    fetched=yes
    break
  fi
  sleep "$pause"
done
if [ -z "$fetched" ]; then
  say "could not fetch $TRAINYARD_AGENT: see the lines above, the node's role, and the way from its subnet to S3"
  exit 1
fi
if ! echo "$TRAINYARD_AGENT_SHA256  $home/agent.zip" | sha256sum --check --status; then
  say "$TRAINYARD_AGENT is not the agent that the job was admitted with: its SHA-256 is not $TRAINYARD_AGENT_SHA256"
  exit 1
fi

mkdir -p "$home/agent"
"$python" -m zipfile -e "$home/agent.zip" "$home/agent" || { say "$TRAINYARD_AGENT is not an archive of the agent"; exit 1; }
PYTHONPATH="$home/agent" "$python" -m agent || { say "the agent ended with code $?"; exit 1; }
