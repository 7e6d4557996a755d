"""`make bench-checkpoints`: commits and restores over TLS, the agent's engine beside s5cmd and the AWS command line.

`python -m benchmarks.checkpoints [ROUNDS]` writes docs/benchmarks/checkpoints.md; ends with 1 where a bound is not met.
"""

from __future__ import annotations

import filecmp
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.checkpoints.results import (
    AWS,
    BYTES,
    FASTER,
    FASTER_LATE,
    HEAD,
    HELPED,
    LARGE,
    OURS,
    S5CMD,
    SMALL,
    Quiet,
    Run,
    broken,
    helper_rows,
    rows,
)  # fmt: skip
from benchmarks.measured import measured
from benchmarks.pages import write_page
from benchmarks.served import ROOT

PAGE = ROOT / "docs" / "benchmarks" / "checkpoints.md"
PEERS = ROOT / "build" / "checkpoint-peers" / "bin"
MEMORY = Path("/dev/shm")  # noqa: S108
ROUNDS, LEAST_ROUNDS = 5, 3
HELPERS = (1, 2, 3)
RACES = {"at once": (0, 0), "20 ms late": (20, 90)}
"""How the server answers: how many milliseconds late, and with how many MB a second on each connection (0: as many as it can)."""
ABOUT = """# Checkpoints beside s5cmd and the AWS command line

Written by `make bench-checkpoints`. A commit sends a folder to S3, a restore brings it back; over TLS 1.3, to a server of its own
process on the same machine (`localaws/sink`), which keeps the objects in memory. All run in turn and change places every round.
Before the clock runs, each makes one commit to a server that computes every checksum that it is sent, and one restore whose files
are compared byte by byte; for the rows below the server computes none, since in AWS it does that on machines of its own.

The engine's time is that of its call, in a process that has a client already, as an agent has had for minutes; that of the others
is their process'. The start of the engine's helpers and the comparison of all digests are in it. CPU is that of the whole call, its
helpers included, or process; memory is the agent's, and its helpers have less each. Source and target are in memory (tmpfs): creating
5,000 files takes this machine's disk between one and five seconds, whoever asks for it.
"""
NOT_MEASURED = """
*20 ms late* also means 90 MB a second on each connection, as S3 gives. The bounds: commits of large files at least 1.1 times s5cmd,
restores at least as fast with at most 1.2 times its CPU, in both races; small files 4 and 3 times as fast, and twice where connections
have a rate: packs go over five of them, since each needs memory; no process above 128 MB, a bare interpreter's left out.

Not measured: the real network, S3's own time and its limits (3,500 PUTs a second and prefix); disks; a training that uses the
processors meanwhile. The server shares two processors with who is measured.
"""


@dataclass(frozen=True)
class Server:
    """A sink and its process."""

    process: subprocess.Popen[str]
    endpoint: str
    authority: str

    def send_command(self, command: str) -> dict[str, Any]:
        """Sends a command (`clear`, `verify`, `trust`), and returns what was asked of the server since the last one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def server(folder: Path, late_ms: float, mb_s: float = 0) -> Iterator[Server]:
    command = [sys.executable, "-m", "localaws.sink", str(folder), "--late-ms", str(late_ms), "--mb-s", str(mb_s)]
    # The memory of bodies is kept for the next ones: new pages would take the server as long as the bytes.
    kept = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **kept}
    ) as process:
        assert process.stdout is not None
        endpoint, authority = process.stdout.readline().split()
        try:
            yield Server(process, endpoint, authority)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def variables(at: Server, work: Path) -> dict[str, str]:
    """Nobody's settings are found."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(work),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'node'}:{ROOT / 'build' / 'agent-libs' / 'python'}",
        "AWS_ACCESS_KEY_ID": "benchmark",
        "AWS_SECRET_ACCESS_KEY": "benchmark",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": at.endpoint,
        "AWS_CA_BUNDLE": at.authority,
        "S3_ENDPOINT_URL": at.endpoint,
    }


def files_in(work: Path) -> dict[str, Path]:
    """Random bytes: nothing compresses, and no two files are equal."""
    small, large = work / "small", work / "large"
    for number in range(5000):
        folder = small / f"layer-{number // 100:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:04d}.bin").write_bytes(os.urandom(65536))
    large.mkdir()
    for number in range(4):
        with (large / f"rank-{number}.pt").open("wb") as file:
            for _ in range(256):
                file.write(os.urandom(2**20))
    return {SMALL: small, LARGE: large}


def command(by: str, what: str, source: Path, target: Path, listing: Path) -> list[str]:
    here, there = f"{source}/", f"s3://bench/{source.name}/"
    if by == OURS:
        return [
            sys.executable, "-m", "benchmarks.checkpoints.ours", what, str(source if what == "commit" else target), str(listing),
        ]  # fmt: skip
    if by == S5CMD:
        return [str(PEERS / "s5cmd"), "cp", *([here, there] if what == "commit" else [f"{there}*", f"{target}/"])]
    copy = [str(PEERS / "aws"), "s3", "cp", "--recursive", "--only-show-errors"]
    return [*copy, *([here, there] if what == "commit" else [there, f"{target}/"])]


def both(by: str, at: Server, source: Path, work: Path, more: Mapping[str, str] = {}) -> dict[str, Run]:
    """A commit of the folder to an empty bucket, and its restore to an empty folder."""
    at.send_command("clear")
    target, listing, found = work / "restored", work / f"{source.name}.list", {}
    for what in ("commit", "restore"):
        shutil.rmtree(target, ignore_errors=True)
        child = measured(
            command(by, what, source, target, listing), variables={**variables(at, work), **more}, work=work
        )
        if by == OURS:
            told = json.loads(child.output)
            own = max(told["peak_mb"], told["helper_mb"]) - told["bare_mb"]
            found[what] = Run(told["seconds"], told["cpu_s"], told["peak_mb"], own, child.seconds)
        else:
            found[what] = Run(child.seconds, child.cpu_s, child.peak_mb, child.peak_mb, child.seconds)
    return found


def proven(by: str, at: Server, sources: dict[str, Path], work: Path) -> str:
    """Checks that all bytes arrive and come back. Returns the checksums that were sent."""
    at.send_command("verify")
    for files, source in sources.items():
        both(by, at, source, work)
        paths = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
        back = {path.relative_to(work / "restored") for path in (work / "restored").rglob("*") if path.is_file()}
        assert paths == back, f"{by}, {files}: {sorted(paths ^ back)[:3]}"
        differ = [path for path in paths if not filecmp.cmp(source / path, work / "restored" / path, shallow=False)]
        assert not differ, f"{by}, {files}: {differ[:3]} came back with other bytes"
    return ", ".join(sorted(at.send_command("trust")["checksums"])) or "none"


def race(
    at: Server, sources: dict[str, Path], work: Path, rounds: int, who: Sequence[str]
) -> dict[tuple[str, str, str], list[Run]]:
    found: dict[tuple[str, str, str], list[Run]] = {
        (what, files, by): [] for files in BYTES for what in ("commit", "restore") for by in who
    }
    for number in range(rounds):
        first = number % len(who)
        for by in (*who[first:], *who[:first]):
            for files, source in sources.items():
                for what, run in both(by, at, source, work).items():
                    found[what, files, by].append(run)
                    print(f"  {what:8}{files:16}{by:20}{run.seconds:7.2f} s {run.peak_mb:5.0f} MB", flush=True)
    return found


def by_helpers(at: Server, source: Path, work: Path, count: int, rounds: int) -> dict[str, Run]:
    """The runs of the median time with so many helpers."""
    found = dict[str, list[Run]]()
    for _ in range(rounds):
        for what, run in both(OURS, at, source, work, {"BENCH_HELPERS": str(count)}).items():
            found.setdefault(what, []).append(run)
    return {what: sorted(runs, key=lambda run: run.seconds)[len(runs) // 2] for what, runs in found.items()}


def quiet(at: Server, work: Path) -> Quiet:
    """A pass over a folder in which nothing is new."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        command = [sys.executable, "-m", "benchmarks.checkpoints.quiet", folder]
        child = measured(command, variables=variables(at, work), work=work)
    return Quiet(**json.loads(child.output))


def versions() -> str:
    s5cmd = subprocess.run([PEERS / "s5cmd", "version"], capture_output=True, text=True, check=True).stdout.split("-")[
        0
    ]
    aws = subprocess.run([PEERS / "aws", "--version"], capture_output=True, text=True, check=True).stdout.split()[0]
    import boto3

    return f"Python {platform.python_version()}, boto3 {boto3.__version__}; s5cmd {s5cmd.strip()}; {aws}"


def load() -> str:
    """Of the last minute, the last five and the last fifteen."""
    return ", ".join(f"{one:.1f}" for one in os.getloadavg())


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    if rounds < LEAST_ROUNDS:
        sys.exit(f"{rounds} rounds are too few for a median; at least {LEAST_ROUNDS}")
    before, found, checksums, helped = load(), {}, {}, {}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=MEMORY) as folder:
        work = Path(folder)
        sources = files_in(work)
        for answers, (late_ms, mb_s) in RACES.items():
            print(f"answers {answers}", flush=True)
            with server(work / f"server-{late_ms}", late_ms, mb_s) as at:
                if not late_ms:
                    checksums = {by: proven(by, at, sources, work) for by in (OURS, S5CMD, AWS)}
                    passes = quiet(at, work)
                at.send_command("trust")
                who = [OURS, S5CMD] if late_ms else [OURS, S5CMD, AWS]
                found[answers] = race(at, sources, work, rounds, who)
                if not late_ms:
                    helped = {count: by_helpers(at, sources[LARGE], work, count, rounds) for count in HELPERS}
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, load {before} at the start and {load()} at the end"
    sent = "; ".join(f"{by}: {which}" for by, which in checksums.items())
    ours = found["at once"]["commit", SMALL, OURS]
    table = [*HEAD, *(row for answers, runs in found.items() for row in rows(answers, runs))]
    facts = (
        f"{rounds} rounds; {machine}. {versions()}. Checksums of bodies: {sent}. With the start of a process, its libraries and\n"
        f"its client the engine's commit of {SMALL} takes {median(run.whole_s for run in ours):.2f} s.\n\n{passes.sentence}"
    )
    write_page(PAGE, "\n".join([ABOUT, facts, "", *table, HELPED, *helper_rows(helped)]) + "\n" + NOT_MEASURED)
    problems = [
        *broken("at once", found["at once"]), *broken("20 ms late", found["20 ms late"], {**FASTER, **FASTER_LATE}), *passes.broken,
    ]  # fmt: skip
    print(PAGE.read_text(), *problems, sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
