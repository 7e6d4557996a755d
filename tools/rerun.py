"""Runs each test that failed in a lane once more, with nothing beside it, and lists the ones that passed as flaky.

`python -m tools.rerun FOLDER PART...`, after the lanes of `make test` and its like. FOLDER has the results of each part as
`tools.summary` reads them. FOLDER/flaky keeps both outputs of each such test, and FOLDER/PART.flaky lists those that passed alone.
A part that ended in any other way than with failed tests, more than MOST_FLAKY failed tests, and a failed test of what an attacker
must not do stay red: nothing is run again. Some files tell a story, and a test in the middle needs its beginning. So the tests of the
file that ran before it run again with it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.summary import MOST_FLAKY, TESTS_FAILED, Part, has_failed, identify, read, read_cases

NEVER = "tests/security/"
"""Where a red test is never flaky: a right that is denied only sometimes is granted."""


def find_obstacle(parts: Sequence[Part]) -> str:
    """Returns why nothing may run again; empty if the failed tests may."""
    failed = [test for part in parts for test in part.failed]
    if broken := [part.name for part in parts if part.code not in (0, TESTS_FAILED)]:
        return f"{', '.join(broken)} did not end as tests do"
    if silent := [part.name for part in parts if part.code == TESTS_FAILED and not part.failed]:
        return f"{', '.join(silent)} failed without naming a test"
    if secured := [test for test in failed if test.startswith(NEVER)]:
        return f"{secured[0]} is a test of security"
    if len(failed) > MOST_FLAKY:
        return f"{len(failed)} tests failed, more than {MOST_FLAKY}"
    return ""


def keep_first_output(folder: Path, part: str, test: str, into: Path) -> None:
    """Writes what the test printed when it failed in its lane."""
    cases = [case for case in read_cases(folder, part) if identify(case) == test]
    texts = [f"{child.tag}\n{child.text or ''}" for case in cases if has_failed(case) for child in case]
    into.write_text("\n".join(texts), errors="backslashreplace")


def list_story(folder: Path, part: str, test: str) -> list[str]:
    """Returns what the lane ran of the test's file, up to the test. Skipped tests are not in it."""
    ran = dict.fromkeys(identify(case) for case in read_cases(folder, part) if case.find("skipped") is None)
    of_file = [one for one in ran if one.partition("::")[0] == test.partition("::")[0]]
    return of_file[: of_file.index(test) + 1]


def run_alone(story: Sequence[str], folder: Path) -> bool:
    """Runs the story in a process of its own and keeps its output; True if all of it ran and passed."""
    results = folder / "second.xml"
    command = [sys.executable, "-m", "pytest", "-vv", f"--junit-xml={results}", "-o", "junit_family=xunit1", *story]
    with (folder / "second.txt").open("w") as output:
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    return code == 0 and read(folder, "second").passed == len(story)


def main(arguments: Sequence[str]) -> int:
    folder, names = Path(arguments[0]), arguments[1:]
    parts = [read(folder, name) for name in names]
    if not any(part.failed for part in parts):
        return 0
    if obstacle := find_obstacle(parts):
        print(f"Nothing is run again: {obstacle}.", flush=True)
        return 0
    for part in parts:
        for number, test in enumerate(part.failed):
            kept = folder / "flaky" / f"{part.name}-{number}-{re.sub(r'[^A-Za-z0-9_]+', '-', test)[-100:]}"
            kept.mkdir(parents=True, exist_ok=True)
            keep_first_output(folder, part.name, test, kept / "first.txt")
            print(f"Running again, alone: {test} ...", flush=True)
            if run_alone(list_story(folder, part.name, test), kept):
                with (folder / f"{part.name}.flaky").open("a") as listed:
                    listed.write(f"{test}\n")
            print(f"Both outputs are in {kept}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
