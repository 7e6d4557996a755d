"""Tells by a name and a few bytes what a file is: a log, a small text, a picture or a database; or weights, as whatever is not known."""

from __future__ import annotations

import json
import re
from enum import Enum
from pathlib import PurePosixPath

from agent.layouts.formats import MOST_DOCUMENT, At

EVENTS = re.compile(r".*\.tfevents\..*|.*\.wandb", re.IGNORECASE)
"""TensorBoard's events and Weights & Biases' runs: in binary, and never weights."""
ROTATED = r"([.-]?\d{1,8}|[.-]\d{4}-\d\d-\d\d[^/]{0,16}|\.rank[-_]?\d{1,6}|\.bak|\.old)?"
LOG = re.compile(
    rf".*\.(log|out|err|jsonl|ndjson){ROTATED}|log(_\d{{1,8}})?\.txt{ROTATED}|.*[-_.]log\.txt{ROTATED}|(std)?(out|err)(\.txt)?{ROTATED}",
    re.IGNORECASE,
)
"""Names of logs, also of those that were rotated or that have a rank: what is in them has to be lines of text as well."""
PACKED_LOG = re.compile(
    rf"log\.(gz|zst|bz2|xz)|.*\.(log|out|err){ROTATED}\.(gz|zst|bz2|xz)|"
    rf"([^/]*[-_.])?(log|metrics)s?([-_.][^/]*)?\.(txt|csv|tsv|jsonl|ndjson){ROTATED}\.(gz|zst|bz2|xz)",
    re.IGNORECASE,
)
"""Names of logs that are packed. Other packed texts may be weights, as NumPy's savetxt writes them: they have to be whole."""
PACKED = (".gz", ".zst", ".bz2", ".xz")
TEXTS = re.compile(
    r".*\.(txt|csv|tsv|json|ya?ml|toml|ini|cfg|conf|md|rst|html|py|sh|pid|lock|log|out|err|jsonl|ndjson)", re.IGNORECASE
)
"""Names of texts: one of another name has to end a line to count as text."""
WEIGHTS = re.compile(
    r".*\.(pth?|ckpt|bin|safetensors|np[yz]|h5|hdf5|keras|onnx|pb|tflite|gg(uf|ml)|pkl|pickle|joblib|model|params|pdparams|pdopt|msgpack|ubj|"
    r"cbm|mar|distcp|index|data|zip|tar|vec|pmml|pbtxt)",
    re.IGNORECASE,
)
"""Names of weights, whatever is in them."""
MODELS = re.compile(
    rb"tree\r?\n(?:version|num_class)|svm_type |solver_type |<\?xml|<PMML|\d{1,9} \d{1,6}\r?\n\S+(?: -?\d[\d.e+-]*){3}|"
    rb"\s*\{\s*\"(?:learner|version\"\s*:\s*\[|oblivious_trees|features_info|model_info|trees\"|booster|weights\"|state_dict|params\"\s*:\s*\{)"
)
"""How models begin that are kept as text: LightGBM, LIBSVM, PMML, word vectors, XGBoost, CatBoost."""
MEDIA = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"RIFF", b"OggS", b"\x1aE\xdf\xa3")
TOOLS = re.compile(
    r".*\.(pyc|svg|tiff?|bmp|nsys-rep|xplane\.pb|trace\.json(\.gz)?)|trace(_rank_?\d{1,6})?\.json(\.gz)?|core\.\d{1,10}|\.DS_Store|"
    r"heartbeat([._-]?rank)?[._-]?\d{0,6}|hostname",
    re.IGNORECASE,
)
"""Names of what profilers, Python, desktops and crashes leave behind: never weights."""
SQLITE = b"SQLite format 3\0"
BESIDE_SQLITE = ("-journal", "-wal", "-shm")
SMALL = 1024 * 1024
"""Bytes of a text or a table at most that counts as small. A JSON document shows itself whether it is whole, so it may be larger."""
PROBE = 4096
JSON = re.compile(rb"\s*(?:\{\s*(?:[\"}]|$)|\[\s*(?:[\"{\[\]]|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*,|$))")
"""How a document in JSON begins, and no line of a log: those have a time, a level or a rank in brackets."""
CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\x08\x0c\x1b")
"""Bytes that no text has: progress bars and colours use the others."""


class FileKind(Enum):
    """What a file is, as far as its name and its ends show."""

    WEIGHTS = "weights"
    """Or what is not known to be anything else: it has to be whole."""
    RECORD = "record"
    """A log by its name and by what is in it: whoever writes it appends."""
    LINES = "lines"
    """Text in lines that may be a log, or large."""
    TEXT = "text"
    """Small text in lines: a table, a configuration, also a log."""
    DOCUMENT = "document"
    """Other text: JSON, and a name or an empty file where they are small."""
    WORDS = "words"
    """A few words without the end of a line, in a file whose name says nothing: the name of the newest checkpoint, or a very small one."""
    NOTE = "note"
    """A picture, a video, a database or what a tool leaves behind: as it is at one moment is as its writer would find it after a crash."""

    @property
    def is_beside(self) -> bool:
        """Whether it is no part of any checkpoint."""
        return self in (FileKind.RECORD, FileKind.TEXT, FileKind.DOCUMENT, FileKind.NOTE)

    @property
    def is_small_text(self) -> bool:
        return self in (FileKind.TEXT, FileKind.DOCUMENT, FileKind.WORDS)

    @property
    def is_lines(self) -> bool:
        """Whether it may be a log that only grows."""
        return self in (FileKind.RECORD, FileKind.LINES, FileKind.TEXT)


def find_kind(read: At, size: int, path: str) -> FileKind:
    """Returns what a file of `size` bytes is. Where its name and its content differ it counts as weights."""
    name = PurePosixPath(path).name
    if EVENTS.fullmatch(name):
        return FileKind.RECORD
    if TOOLS.fullmatch(name):
        return FileKind.NOTE
    if has_name_of_weights(path):
        return FileKind.WEIGHTS
    if not size:
        return FileKind.DOCUMENT
    head = read(0, PROBE)
    if head.startswith((SQLITE, *MEDIA)) or head[4:8] == b"ftyp" or name.endswith(BESIDE_SQLITE):
        return FileKind.NOTE
    if PACKED_LOG.fullmatch(name):
        return FileKind.RECORD
    tail = read(max(0, size - PROBE), PROBE) if size > PROBE else b""
    if name.endswith(PACKED) or not _is_text(head) or not _is_text(tail):
        return FileKind.WEIGHTS
    return _find_text(head, tail, size, name)


def has_name_of_weights(path: str) -> bool:
    """Whether a file has weights by its name, whatever is in it."""
    return WEIGHTS.fullmatch(PurePosixPath(path).name) is not None


def _find_text(head: bytes, tail: bytes, size: int, name: str) -> FileKind:
    if MODELS.match(head):
        return FileKind.WEIGHTS
    has_lines = any(end in (tail or head) for end in (b"\n", b"\r"))
    if _is_json_lines(head, LOG.fullmatch(name) is not None):
        return FileKind.RECORD
    if has_lines and not JSON.match(head):
        lines = FileKind.TEXT if size <= SMALL else FileKind.LINES
        return FileKind.RECORD if LOG.fullmatch(name) else lines
    if TEXTS.fullmatch(name) and size <= (MOST_DOCUMENT if JSON.match(head) else SMALL):
        return FileKind.DOCUMENT
    return FileKind.WORDS if size <= PROBE else FileKind.WEIGHTS


def _is_text(some: bytes) -> bool:
    """Whether some bytes are text in UTF-8, or nearly so; they may begin and end within a letter."""
    if CONTROLS.intersection(some):
        return False
    wrong = some.decode("utf-8", "replace").count("\ufffd")
    return wrong <= 8 + len(some) // 50


def _is_json_lines(head: bytes, is_log: bool) -> bool:
    """Whether text begins with a line that is a whole object in JSON, and another one follows; the name of a log stands for that."""
    first, end, more = head.lstrip().partition(b"\n")
    if not end or first[:1] != b"{" or not (is_log or more.lstrip()[:1] == b"{"):
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False
