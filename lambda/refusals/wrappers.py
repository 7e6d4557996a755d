"""Finds the program that another one starts, as `env`, `nice` and `uv run` do. What is not certain is not found."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from refusals.shell_commands import read_assignment

NUMBER = re.compile(r"-[0-9]+")
"""An option of nice, and of nothing that means another number."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that starts the program behind its own words. Options are written without what follows an equals sign."""

    before: tuple[str, ...] = ()
    """Words that have to follow its name, as run in `uv run`."""
    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    """Options whose value is the next word, or a part of the same."""
    places: int = 0
    """Words of its own before the program, as the seconds of timeout."""
    modules: frozenset[str] = frozenset()
    """Options with which the word behind it is a module of Python."""


def _wrapper(before: str = "", *, flags: str = "", values: str = "", places: int = 0, modules: str = "") -> Wrapper:
    return Wrapper(
        tuple(before.split()), frozenset(flags.split()), frozenset(values.split()), places, frozenset(modules.split())
    )


_CONDA = _wrapper(
    "run", flags="--no-capture-output --live-stream -s -v -vv --verbose --dev --debug-wrapper-scripts",
    values="-n --name -p --prefix --cwd -e --env -r --root-prefix -a --attach --label --rc-file",
)  # fmt: skip
_OF_UV = "--with --with-editable --with-requirements --from -p --python --index --default-index --index-url -i --extra-index-url "
_OF_UV += (
    "-f --find-links --cache-dir --directory --project --config-file --color --env-file --constraints -c --overrides"
)
_FLAGS_OF_UV = "-q --quiet -v --verbose --no-cache -n --offline --isolated --no-progress --native-tls --no-config --no-index --refresh "
_FLAGS_OF_UV += "--upgrade -U --managed-python --no-managed-python --no-python-downloads --no-build --no-binary --no-env-file --reinstall"
WRAPPERS: Mapping[str, tuple[Wrapper, ...]] = {
    "env": (_wrapper(flags="- -i --ignore-environment -0 --null -v --debug", values="-u --unset -C --chdir"),),
    "exec": (_wrapper(flags="-c -l -cl", values="-a"),),
    "command": (_wrapper(flags="-p"),),
    "nice": (_wrapper(values="-n --adjustment"),),
    "nohup": (_wrapper(),),
    "setsid": (_wrapper(flags="-c --ctty -f --fork -w --wait"),),
    "time": (_wrapper(flags="-p -v --verbose --portability -a --append", values="-f --format -o --output"),),
    "timeout": (
        _wrapper(flags="--foreground --preserve-status -v --verbose", values="-k --kill-after -s --signal", places=1),
    ),
    "stdbuf": (_wrapper(values="-i --input -o --output -e --error"),),
    "unbuffer": (_wrapper(flags="-p"),),
    "ionice": (_wrapper(flags="-t --ignore", values="-c --class -n --classdata"),),
    "taskset": (_wrapper(flags="-a --all-tasks -c --cpu-list", places=1),),
    "numactl": (
        _wrapper(
            flags="-a --all -l --localalloc",
            values="-C --physcpubind -N --cpunodebind -m --membind -i --interleave -p --preferred",
        ),
    ),
    "sudo": (_wrapper(flags="-E --preserve-env -H --set-home -n --non-interactive", values="-u --user -g --group"),),
    "tini": (_wrapper(flags="-g -s -v -vv -w", values="-e -p"),),
    "dumb-init": (_wrapper(flags="-c --single-child -v --verbose", values="-r --rewrite"),),
    "xvfb-run": (_wrapper(flags="-a --auto-servernum", values="-n --server-num -s --server-args"),),
    "neuron_parallel_compile": (_wrapper(values="--num_parallel"),),
    "nsys": (
        _wrapper(
            "profile",
            values="-o --output -t --trace -s --sample -c --capture-range -f --force-overwrite -w --show-output -x --stop-on-exit "
            "-d --duration -y --delay -b --backtrace --stats --capture-range-end --cuda-memory-usage --gpu-metrics-device "
            "--gpu-metrics-devices --cuda-graph-trace --python-sampling --python-backtrace --cudabacktrace --kill --wait "
            "--trace-fork-before-exec",
        ),
    ),
    "uv": (
        _wrapper(
            "run",
            flags=f"{_FLAGS_OF_UV} --no-sync --frozen --locked --active --no-project --all-extras --all-groups --no-dev --dev --only-dev "
            "--no-default-groups --no-editable --exact --all-packages",
            values=f"{_OF_UV} --extra --no-extra --group --no-group --only-group --package",
            modules="-m --module",
        ),
        _wrapper("tool run", flags=_FLAGS_OF_UV, values=_OF_UV),
    ),
    "uvx": (_wrapper(flags=_FLAGS_OF_UV, values=_OF_UV),),
    "poetry": (_wrapper("run"),),
    "pipenv": (_wrapper("run"),),
    "pdm": (_wrapper("run", flags="-s --site-packages --no-site-packages", values="-p --project"),),
    "rye": (_wrapper("run"),),
    "hatch": (_wrapper("run"),),
    "pixi": (
        _wrapper(
            "run", flags="--frozen --locked --no-install --clean-env -q -v --quiet --verbose",
            values="-e --environment --manifest-path",
        ),
    ),
    "conda": (_CONDA,),
    "mamba": (_CONDA,),
    "micromamba": (_CONDA,),
}  # fmt: skip
"""By the name of the program; several where what follows the name decides."""


def unwrap(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Returns the words of the program that runs at last, and the variables that are set for it on the way; no words if that is not
    certain. A program that starts no other one is returned as it is."""
    left, variables = list(words), dict[str, str]()
    while left and (kinds := WRAPPERS.get(left[0].rsplit("/", 1)[-1])):
        rest = left[1:]
        kind = next((one for one in kinds if tuple(rest[: len(one.before)]) == one.before), None)
        if kind is None:
            return left, variables  # `conda install`, `uv sync`
        found = _skip_options(kind, rest[len(kind.before) :])
        if found is None:
            return [], variables
        left = found
        while left and (assignment := read_assignment(left[0])):
            variables[assignment[0]] = assignment[1]
            left = left[1:]
    return left, variables


def _skip_options(kind: Wrapper, words: Sequence[str]) -> list[str] | None:
    """Returns the words behind its options and its own words; None if an option is not known, which may take a value."""
    left = list(words)
    while left and left[0].startswith("-"):
        option, equals, _ = left.pop(0).partition("=")
        if option == "--":
            break
        if option in kind.modules:
            return ["python", "-m", *left]
        if option in kind.values:
            left = left if equals else left[1:]
        elif not (option in kind.flags or NUMBER.fullmatch(option) or option[:2] in kind.values):
            return None
    return left[kind.places :]
