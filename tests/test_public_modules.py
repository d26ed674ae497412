"""Each package names in ``__all__`` the modules and names that other packages may import."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MEMORY = ("records", "gate", "session", "erasure", "audit")
ENTRY_POINTS = {("bot", "cli"), ("bot", "testing")}
"""What users import: the program's entry points and what helps to test extensions."""

Module = tuple[str, ...]


def _owner(module: Module) -> Module:
    """Return the package that decides about a module: a part of memory, or a package of ``bot``."""
    if module[0] != "bot":
        return module[:1]
    return (
        module[:3]
        if module[1:2] == ("memory",) and module[2:3] and module[2] in MEMORY
        else module[:2]
    )


@pytest.fixture(scope="module")
def modules() -> dict[Module, ast.Module]:
    paths = [path for root in ("bot", "channels") for path in (ROOT / root).rglob("*.py")]
    found: dict[Module, ast.Module] = {}
    for path in paths:
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[parts[:-1] if parts[-1] == "__init__" else parts] = ast.parse(path.read_text())
    return found


@pytest.fixture(scope="module")
def packages(modules) -> set[Module]:
    return {module[:-1] for module in modules if len(module) > 1}


@pytest.fixture(scope="module")
def used(modules, packages) -> dict[Module, set[str]]:
    """What each package has that modules of other packages import, by the package."""
    used: dict[Module, set[str]] = defaultdict(set)
    for module, tree in modules.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            for alias in node.names:
                target = tuple(node.module.split("."))
                if target[0] not in {"bot", "channels"}:
                    continue
                if (*target, alias.name) in modules or target in packages:
                    target = (*target, alias.name)
                owner = _owner(target)
                if _owner(module) == owner or len(target) <= len(owner):
                    continue
                for length in range(len(owner), len(target)):
                    used[target[:length]].add(target[length])
    return used


def _stated(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return None


def _imported(tree: ast.Module) -> set[str]:
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in imports for alias in node.names}


def test_packages_use_of_each_other_only_what_is_public(modules, packages, used):
    for package, names in used.items():
        if package in packages:
            stated = _stated(modules[package]) or []
            hidden = names - set(stated)
            assert not hidden, f"{'.'.join(package)}: __all__ lacks {sorted(hidden)}"


def test_no_module_is_public_that_no_other_package_uses(modules, used):
    for package, tree in modules.items():
        if (stated := _stated(tree)) and _owner(package) not in ENTRY_POINTS:
            listed = {name for name in stated if (*package, name) in modules}
            unused = listed - used[package] - _imported(tree)
            assert not unused, f"{'.'.join(package)}: nobody uses {sorted(unused)}"
