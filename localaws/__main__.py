"""Serves a local AWS until Ctrl-C (`python -m localaws`), and prints the variables by which SDKs and command lines reach it."""

from __future__ import annotations

import argparse
import signal
import sys
import threading

from localaws.account import DEPLOYER
from localaws.conditions import Conditions
from localaws.faults import plan_faults
from localaws.surroundings import shed_credentials

FURTHER = ("ec2", "cloudformation", "ssm", "ecr", "codebuild", "sagemaker", "batch", "rds_data")
"""Gaps beyond those of every local AWS."""


def main(words: list[str]) -> None:
    """Serves until SIGINT or SIGTERM; then everything that ran in the account has ended."""
    parser = argparse.ArgumentParser(prog="python -m localaws", description=__doc__)
    parser.add_argument("--speed", type=float, default=1.0, help="how much faster than AWS its delays pass")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME:key=value,...", help="see README.md")
    parser.add_argument("--region", default="us-east-1", help="the region that the printed variables name")
    given = parser.parse_args(words)
    # Imports moto, which reads the person's settings of AWS unless these are gone.
    from localaws.server import LocalAws
    from localaws.services import ec2

    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    with LocalAws(Conditions(speed=given.speed, faults=plan_faults(*given.fault)), gaps=FURTHER) as aws:
        aws.at_stop(ec2.nodes().stop)
        variables = {**aws.environment(), **aws.credentials_for(DEPLOYER).variables()}
        for name, value in {**variables, "AWS_DEFAULT_REGION": given.region}.items():
            print(f"export {name}={value}")
        sys.stdout.flush()
        over.wait()


if __name__ == "__main__":
    shed_credentials()
    main(sys.argv[1:])
