"""Reads the source files of the project as syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("app.py", "contract", "grid_child", "image_builder", "lambda", "node", "stacks", "trainyard")
EVERYTHING = (*PRODUCT, "localaws", "rehearsal", "tools", "tests", "benchmarks", "trainer", "examples")


def python_files(*places: str) -> list[Path]:
    """Python files of files and folders of the project, in order; what does not exist yet has none."""
    return sorted(set[Path]().union(*(_files(place) for place in places)))


@cache
def _files(place: str) -> frozenset[Path]:
    path = ROOT / place
    found = path.rglob("*.py") if path.is_dir() else {path} & set(ROOT.glob("*.py"))
    return frozenset(file for file in found if not {"out", "__pycache__"} & set(file.parts))


def named_files() -> list[Path]:
    """Python files whose names and sentences keep the rules of test_names and test_sentences."""
    return python_files(*PRODUCT, "rehearsal", "tools", "trainer")


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


@dataclass(frozen=True, slots=True)
class Source:
    """What tests ask about a file, all of it from one look at its syntax tree, which is too large to be kept."""

    imported: frozenset[str]
    """`a.b` for `import a.b`, and `a.b.c` for `from a.b import c`, whether c is a module or not; wherever in the file, but not for type
    checkers alone."""
    for_types: frozenset[str]
    """The same of what it imports for type checkers alone."""
    docstrings: tuple[str, ...]
    """Of the module, "" where it has none, and then of its classes and functions."""
    classes: tuple[str, ...]
    """Names of classes at the top."""
    functions: tuple[tuple[str, int], ...]
    """Name and lines of each function, wherever it stands."""
    texts: tuple[tuple[int, str], ...]
    """Line and value of each string constant that is not a docstring, parts of f-strings included."""


@cache
def source(file: Path) -> Source:
    """Parses a file, once for all tests."""
    tree = ast.parse(file.read_text())
    typing_only, documentation = set[int](), set[int]()
    imported, for_types = set[str](), set[str]()
    docstrings, functions, texts = list[str](), list[tuple[str, int]](), list[tuple[int, str]]()
    for node in ast.walk(tree):  # what holds a node comes before it
        match node:
            case ast.If() if "TYPE_CHECKING" in ast.dump(node.test):
                typing_only |= {id(inner) for part in node.body for inner in ast.walk(part)}
            case ast.Import():
                found = for_types if id(node) in typing_only else imported
                found |= {alias.name for alias in node.names}
            case ast.ImportFrom():
                found = for_types if id(node) in typing_only else imported
                if node.module and not node.level:
                    found |= {f"{node.module}.{alias.name}" for alias in node.names}
            case ast.Expr():
                documentation.add(id(node.value))
            case ast.Constant():
                if isinstance(node.value, str) and id(node) not in documentation:
                    texts.append((node.lineno, node.value))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                functions.append((node.name, (node.end_lineno or 0) - node.lineno))
                docstrings.append(ast.get_docstring(node) or "")
            case ast.Module() | ast.ClassDef():
                docstrings.append(ast.get_docstring(node) or "")
    return Source(
        imported=frozenset(imported),
        for_types=frozenset(for_types),
        docstrings=tuple(docstrings),
        classes=tuple(node.name for node in tree.body if isinstance(node, ast.ClassDef)),
        functions=tuple(functions),
        texts=tuple(texts),
    )


def imports(file: Path) -> set[str]:
    """Top-level names of everything that a file imports."""
    return {module.partition(".")[0] for module in source(file).imported}


def import_graph(files: list[Path], *, types: bool = False) -> dict[str, set[str]]:
    """Module to those of the same files that it imports, wherever in a file. Folders that are on the path of functions and nodes begin
    no name. `types` counts what is for type checkers alone."""
    modules = {_module(file): file for file in files}

    def known(imported: str) -> str:
        return imported if imported in modules else imported.rpartition(".")[0]

    imported = {file: source(file).imported | (source(file).for_types if types else set()) for file in files}
    return {module: {known(one) for one in imported[file]} & modules.keys() for module, file in modules.items()}


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


@cache
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
