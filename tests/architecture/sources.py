"""Reads the source files of the project as syntax trees."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYREFLY = Path(sys.executable).with_name("pyrefly")
"""The type checker, whatever the PATH is."""
PRODUCT = ("app.py", "builds", "child", "contract", "lambda", "node", "stacks")
EVERYTHING = (*PRODUCT, "rehearsal", "tests", "benchmarks", "examples")


def python_files(*places: str) -> list[Path]:
    """Python files of files and folders of the project, in order; what does not exist yet has none."""
    found: set[Path] = set()
    for place in places:
        path = ROOT / place
        found |= set(path.rglob("*.py")) if path.is_dir() else ({path} & set(ROOT.glob("*.py")))
    return sorted(file for file in found if not {"out", "__pycache__"} & set(file.parts))


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def imports(file: Path) -> set[str]:
    """Top-level names of everything that a file imports, wherever in the file; what is for type checkers alone is not."""
    tree = ast.parse(file.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for part in node.body
        for inner in ast.walk(part)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def code(file: Path) -> str:
    """A file without comments and docstrings."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def texts(file: Path) -> list[tuple[int, str]]:
    """(line, value) of every string constant of a file that is no docstring, parts of f-strings included."""
    tree = ast.parse(file.read_text())
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
    ]
