"""The fields of a dataclass in an installed package, read from its source: importing trl takes seconds and torch."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def dataclass_fields(module: str, name: str) -> dict[str, str]:
    """Field name → annotation as text, with the bases' fields. LookupError when the package or the class is not
    there.
    """
    found = _resolve(module, name, frozenset())
    if found is None:
        raise LookupError(f"{module}.{name} was not found in the installed packages")
    return found


def _resolve(module: str, name: str, seen: frozenset[tuple[str, str]]) -> dict[str, str] | None:
    """None where there is no such class; bases outside of the package tree (`object`, mixins) are left out."""
    tree = _tree(module)
    if tree is None or (module, name) in seen:
        return None
    seen |= {(module, name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == name:
            fields: dict[str, str] = {}
            for base in reversed(node.bases):
                base_name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
                fields.update(_resolve(module, base_name, seen) or {})
            fields.update(_own_fields(node))
            return fields
    # Not defined here: follow the import, also through the `if TYPE_CHECKING:` part of a lazy package.
    for source, original in _imports(tree, module, name):
        found = _resolve(source, original, seen)
        if found is not None:
            return found
    return None


def _own_fields(node: ast.ClassDef) -> dict[str, str]:
    fields = {}
    for item in node.body:
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        annotation, default = ast.unparse(item.annotation), ast.unparse(item.value) if item.value else ""
        if not item.target.id.startswith("_") and "ClassVar" not in annotation and "init=False" not in default:
            fields[item.target.id] = annotation.strip("'\"")
    return fields


def _imports(tree: ast.Module, module: str, name: str) -> Iterator[tuple[str, str]]:
    package = module if _is_package(module) else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            if name == (alias.asname or alias.name):
                parts = package.split(".")
                base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
                yield ".".join(part for part in (base, node.module) if part), alias.name


def _file(module: str) -> Path | None:
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)  # only a top-level name can be found without importing anything
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder, *rest)
        for candidate in (path.with_suffix(".py") if rest else path / "__init__.py", path / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


def _is_package(module: str) -> bool:
    path = _file(module)
    return path is not None and path.name == "__init__.py"


@cache
def _tree(module: str) -> ast.Module | None:
    path = _file(module)
    try:
        return ast.parse(path.read_text(encoding="utf-8")) if path else None
    except (OSError, SyntaxError, ValueError):
        return None
