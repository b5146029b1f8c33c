"""The page that says what imports what, against the code: `docs/architecture.md`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "bothends"
#: The package itself and `python -m`, which are for users and stand above all of it.
ENTRANCES = {"", "__main__"}
#: The exception that the page tells.
EXCEPTION = ("chain.process", "cli")


def lines_of_the_table() -> dict[str, int]:
    """The line of the table that each module or package is on, by number."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1] for row in page.splitlines() if row.startswith("| [`")]
    return {
        path.removesuffix(".py").replace("/", "."): number
        for number, row in enumerate(rows)
        for path in re.findall(r"\(\.\./src/bothends/([^)]+)\)", row)
    }


def module_of(path: Path) -> str:
    """Its name inside the package, which itself has none."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path: Path) -> Iterator[str]:
    """The modules of the package that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        else:
            continue
        yield from (
            name.removeprefix("bothends.") for name in names if name.startswith("bothends.")
        )


def line_of(module: str, lines: dict[str, int]) -> int | None:
    """The line of a module, or else of the package it is in."""
    while module not in lines:
        module, _, _ = module.rpartition(".")
        if not module:
            return None
    return lines[module]


def test_what_the_page_names_exists() -> None:
    modules = {module_of(path) for path in PACKAGE.rglob("*.py")}
    assert lines_of_the_table().keys() <= modules


def test_a_line_imports_only_from_itself_and_from_those_above() -> None:
    lines = lines_of_the_table()
    exceptions = set()
    for path in PACKAGE.rglob("*.py"):
        module = module_of(path)
        if module in ENTRANCES:
            continue
        line = line_of(module, lines)
        assert line is not None, f"docs/architecture.md does not name {module}"
        for imported in imports(path):
            below = line_of(imported, lines)
            assert below is not None, f"docs/architecture.md does not name {imported}"
            if below > line:
                exceptions.add((module, imported))
    assert exceptions == {EXCEPTION}


def test_no_two_classes_share_a_name() -> None:
    """In the package and the experiments, private ones too: who reads a name knows the thing."""
    places: dict[str, list[str]] = {}
    for folder in (PACKAGE, ROOT / "experiments"):
        for path in sorted(folder.rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
