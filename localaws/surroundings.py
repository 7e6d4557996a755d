"""What a local AWS takes from the surroundings of whoever starts it, and what it keeps from the code that runs in it.

That code runs with the rights of this user, and can read what any of the user's processes was started with (/proc/PID/environ).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

OF_A_PERSON = re.compile(r"AWS_.*|.*(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|ACCESS_KEY|API_KEY).*", re.IGNORECASE)
"""Variables that hold or name a person's credentials; nothing here needs them, and nothing here reads a person's settings of AWS."""
WAYS = ("PIP_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE")
"""How the names of variables begin that lead to a package index."""
IN_ADDRESS, BEFORE_HOST = re.compile(r"(?<=://)[^/\s]*@"), re.compile(r"(?:(?<=\s)|^)[^/\s:@]+:[^/\s]*@")
"""A user, with a password or without, in an address; and with a password in one that does not say its scheme."""
PASSWORD = re.compile(r"(?<=://)[^/\s:@]*:[^/\s]*@|(?<=http://)[^/\s]*@|(?<=https://)[^/\s]*@")
"""A user with a password, in an address with its scheme, or whatever stands before the host of a web address, which may be a token. A user
alone may be needed elsewhere, as in ssh://me@host."""
UNSET = (None, None, None, None)


def without_passwords(text: str) -> str:
    """Returns a text without the users and passwords of the addresses in it."""
    return BEFORE_HOST.sub("", IN_ADDRESS.sub("", text))


def read_ways(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the variables that lead to a package index from this computer, without passwords."""
    return {name: without_passwords(value) for name, value in variables.items() if name.upper().startswith(WAYS)}


def name_passwords(variables: Mapping[str, str] = os.environ) -> list[str]:
    """Returns the names of the variables whose passwords `without_credentials` leaves out."""
    return sorted(name for name, value in without_credentials(variables).items() if value != variables[name])


def without_credentials(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that a process may have beside code that it does not trust: no address in them has a password."""
    left = {name: PASSWORD.sub("", value) for name, value in variables.items() if not OF_A_PERSON.fullmatch(name)}
    return {**left, **read_ways(left)}


def shed_credentials() -> None:
    """Starts this program once more without the person's credentials, if it has any: a variable that is removed later stays where
    other processes read it. Call it first."""
    clean = without_credentials(os.environ)
    if clean != dict(os.environ):
        if names := name_passwords():
            print(
                f"{', '.join(names)}: used without the password, which code that runs here could read", file=sys.stderr
            )
        sys.stderr.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], clean)


def open_session() -> Any:
    """Returns a session of boto3 that reads no variable and no file of a person's: neither a profile that may be missing nor keys."""
    import boto3.session
    import botocore.session

    files = dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None))
    return boto3.session.Session(botocore_session=botocore.session.Session(session_vars={"profile": UNSET, **files}))
