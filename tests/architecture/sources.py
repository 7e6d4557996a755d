"""Reads the source files of the project as syntax trees."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYREFLY = Path(sys.executable).with_name("pyrefly")
"""The type checker, whatever the PATH is."""
PRODUCT = ("app.py", "contract", "grid_child", "image_builder", "lambda", "node", "stacks")
UNREAD = ("admission",)
"""Folders of lambda/ whose names and sentences are still to be mended."""
EVERYTHING = (*PRODUCT, "localaws", "rehearsal", "tools", "tests", "benchmarks", "trainer", "examples")


def python_files(*places: str) -> list[Path]:
    """Python files of files and folders of the project, in order; what does not exist yet has none."""
    found: set[Path] = set()
    for place in places:
        path = ROOT / place
        found |= set(path.rglob("*.py")) if path.is_dir() else ({path} & set(ROOT.glob("*.py")))
    return sorted(file for file in found if not {"out", "__pycache__"} & set(file.parts))


def named_files() -> list[Path]:
    """Python files whose names and sentences keep the rules of test_names and test_sentences."""
    files = python_files(*PRODUCT, "rehearsal", "tools", "trainer")
    return [file for file in files if not (file.parent.name in UNREAD and file.parts[-3] == "lambda")]


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def imports(file: Path) -> set[str]:
    """Top-level names of everything that a file imports, wherever in the file; what is for type checkers alone is not."""
    return {module.partition(".")[0] for module in _imported(file)}


def _imported(file: Path, *, types: bool = False) -> set[str]:
    """`a.b` for `import a.b`, and `a.b.c` for `from a.b import c`, whether c is a module or not. `types` counts what is for type
    checkers alone."""
    tree = ast.parse(file.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if not types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for part in node.body
        for inner in ast.walk(part)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def import_graph(files: list[Path], *, types: bool = False) -> dict[str, set[str]]:
    """Module to those of the same files that it imports, wherever in a file. Folders that are on the path of functions and nodes begin
    no name. `types` counts what is for type checkers alone."""
    modules = {_module(file): file for file in files}

    def known(imported: str) -> str:
        return imported if imported in modules else imported.rpartition(".")[0]

    return {
        module: {known(one) for one in _imported(file, types=types)} & modules.keys()
        for module, file in modules.items()
    }


def _module(file: Path) -> str:
    parts = list(file.relative_to(ROOT).with_suffix("").parts)
    own = parts[1:] if parts[0] in {"lambda", "node"} and len(parts) > 1 else parts
    return ".".join(own[:-1] if own[-1] == "__init__" else own)


def find_circle(graph: Mapping[str, Set[str]]) -> list[str]:
    """Returns the modules of one circle of imports, the first of them once more at the end; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []


def below(graph: Mapping[str, Set[str]], module: str) -> set[str]:
    """Modules that it imports, and those that they import, and so on."""
    found, ahead = set[str](), list(graph[module])
    while ahead:
        one = ahead.pop()
        if one not in found:
            found.add(one)
            ahead += graph[one]
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
    """(line, value) of every string constant of a file that is not a docstring, parts of f-strings included."""
    tree = ast.parse(file.read_text())
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
    ]
