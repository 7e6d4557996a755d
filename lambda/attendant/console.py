"""The end of a machine's console, as lines that a person can read in the cause of an error."""

from __future__ import annotations

import re

LINES, WIDTH = 40, 200
LAST_OF_OURS = "trainyard: powering off"
"""What user data says before it powers off; what follows on the console is the shutdown, often more than 40 lines."""
ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and the cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[ -/]*[0-~]"
)
SECRETS = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|(?<=X-Amz-Signature=)\w+|(?<=X-Amz-Security-Token=)[\w%+/=-]+")
"""User data prints no secret; what else runs on an image may print the addresses that it signed."""


def last_lines(output: str) -> tuple[str, ...]:
    """At most LINES lines of at most WIDTH characters, all of them printable."""
    whole = [line for raw in output.split("\n") if (line := _plain(raw))]
    ours = [place for place, line in enumerate(whole) if LAST_OF_OURS in line]
    return tuple(whole[: ours[-1] + 1] if ours else whole)[-LINES:]


def _plain(raw: str) -> str:
    """One line as a terminal would leave it: what follows the last carriage return, without what steers the terminal."""
    shown = ESCAPES.sub("", raw).rstrip("\r").rpartition("\r")[2]
    printable = "".join(letter if letter.isprintable() else " " for letter in shown.expandtabs(1)).rstrip()
    return SECRETS.sub("***", printable)[:WIDTH]


def quote_console(instance: str, region: str, output: str) -> str:
    """Quotes the console in the cause of a node that never reported; where EC2 has none yet, says how to read it later."""
    if lines := last_lines(output):
        return "\n".join([" Its console ended with:", *(f"  {line}" for line in lines), ""])
    ask = f"aws ec2 get-console-output --region {region} --instance-id {instance} --latest --output text"
    return f" EC2 had no console output of it yet; this command reads it later: {ask}"
