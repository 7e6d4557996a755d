"""The credentials of the job as a profile of root's AWS credentials, where the mount helpers of EFS and S3 Files look for them."""

from __future__ import annotations

from configparser import Error, RawConfigParser
from pathlib import Path

from agent.mounts.options import PROFILE
from contract.sessions import SessionCredentials


def write(file: Path, credentials: SessionCredentials) -> None:
    """Writes the profile, and leaves others as they are. Whoever reads the file meanwhile has the old one or the new one."""
    known = RawConfigParser(default_section="")
    try:
        known.read(file, "utf-8")
    except (Error, UnicodeDecodeError):  # no SDK could read it either
        known = RawConfigParser(default_section="")
    known[PROFILE] = {
        "aws_access_key_id": credentials.access_key,
        "aws_secret_access_key": credentials.secret_key,
        "aws_session_token": credentials.token,
    }
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.trainyard")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    with new.open("w", encoding="utf-8") as whole:
        known.write(whole)
    new.replace(file)
