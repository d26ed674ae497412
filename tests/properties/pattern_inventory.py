"""Every regular expression of the program, found in its source and by importing it.

What a module makes while it is imported, a :class:`LazyPattern` or a compiled one, is recorded as it happens:
constants, containers, classes and patterns put together from others alike. A call inside a function is found in the syntax tree, and its
pattern evaluated in the module's namespace. A pattern made of local values needs sample values in
``SAMPLES``; one that cannot be found is a problem that names the file and the line.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from bot.core.patterns import LazyPattern

ROOT = Path(__file__).parents[2]
PACKAGES = ("bot", "channels")
FROM_A_PLACE = "match from a place"
"""A reader that goes through a text from match to match, and ends where none is."""
ANCHORED = {"match", "fullmatch", FROM_A_PLACE}
CALLS = {"match", "fullmatch", "compile", "search", "sub", "subn", "split", "findall", "finditer"}

# Values of the local names that a pattern inside a function is made of.
# Each is an expression in the module's namespace.
SAMPLES: dict[tuple[str, str], str] = {
    ("bot/offline/phrases.py", "f'{_OF_EARLIER_VERSIONS}|(?:^|[.!?。] )_?(?:{lines})'"):
        "[{'lines': _any_of(_OWN_REPLIES)}]",
    ("bot/offline/phrases.py", "f'^(?:(?:{sorry}) )?_?(?:{_any_of(messages)})'"):
        "[{'sorry': 'a a|b.', 'messages': (NOTED, OTHER_SAID)}]",
    ("bot/offline/program_words.py", "''.join((re.escape(text) + (f'(?P<{name}>[^\\n]{{1,{_LONGEST_VALUE}}}?)' if name else '') for text, name, *_rest in parts))"):
        "[{'parts': list(string.Formatter().parse(REASONS[code]))} for code in ('fact_does_not_end', 'file_read_of')]",
    ("bot/llm/provider_model.py", "f'\\b{re.escape(one)}\\b'"): "[{'one': 'max_tokens'}, {'one': 'a a'}]",
    ("bot/runtime/settings/validators.py", "platform.person_id if people else platform.chat_id"):
        "[{'platform': one, 'people': people} for one in PLATFORMS.values() for people in (True, False)]",
    ("bot/transfer/file_storage.py", "re.escape(folder.stem(tape)) + '\\.\\d{8}T\\d{6}Z\\.' + re.escape(tail)"):
        "[{'folder': type('Folder', (), {'stem': lambda _, tape: tape})(), 'tape': 'fake-1', 'tail': '1-9.jsonl'}]",
    ("bot/language/grammatical_person.py", "'(' + '|'.join((re.escape(name) for name in names)) + \")('s)?(?!\\w)\""):
        "[{'names': ['The user', 'the user']}, {'names': ['a a', 'aa']}]",
    ("bot/offline/memory_operations.py", "'\\s+'.join(map(re.escape, passage.split()))"):
        "[{'passage': 'one two two'}, {'passage': 'a a a b'}]",
    ("bot/memory/records/compression/notation.py", "f'[^{re.escape(stops)}]*' if stops else '.*'"):
        "[{'stops': ''}, {'stops': ':}'}, {'stops': ';}'}]",
    ("bot/language/parsed_claim.py", "f'(?<!\\w){re.escape(form)}(?!\\w)'"): "[{'form': 'a a'}, {'form': '--'}]",
    ("bot/language/dates.py", "pattern"): "[{'pattern': one} for one, _, _ in _SPANS_UNSPACED]",
    ("bot/language/negation.py", "f'\\b{re.escape(word)}\\b'"): "[{'word': 'plann'}, {'word': 'a-a'}]",
    ("bot/core/telemetry/redaction.py", "'|'.join(map(re.escape, longest))"):
        "[{'longest': ['aaaaaaab', 'aaaaaaa']}]",
}  # fmt: skip
# Servers that only tests talk to, and what compiles the patterns of others.
UNREAD = ("bot/testing/", "bot/core/patterns.py")


@dataclass(slots=True)
class FoundPattern:
    """A regular expression, what is called on it (nothing where that cannot be seen), and where it stands."""

    pattern: str
    flags: int
    methods: set[str] = field(default_factory=set)
    places: list[str] = field(default_factory=list)

    @property
    def searches(self) -> bool:
        """True where it may be tried at each place of a text."""
        return not self.methods or not self.methods <= ANCHORED


def modules() -> Iterator[tuple[Path, str]]:
    """Yield each module's file and name."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[-1] == "__main__" or path.relative_to(ROOT).as_posix().startswith(UNREAD):
                continue
            yield path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def inventory() -> tuple[list[FoundPattern], list[str]]:
    """Return every pattern, and what is to be done about those that cannot be found."""
    recorded: dict[tuple[str, int], list[re.Pattern[str]]] = {}
    found: dict[tuple[str, int], FoundPattern] = {}
    problems: list[str] = []
    with _recording(recorded):
        loaded = {path: importlib.import_module(name) for path, name in modules()}
    trees = {path: ast.parse(path.read_text("utf-8")) for path in loaded}
    uses = _uses(trees)
    on_locals = _methods_on_locals(trees)

    def add(compiled: re.Pattern[Any], methods: set[str], place: str) -> None:
        if isinstance(compiled.pattern, bytes):
            # Bytes are driven as texts: what a pattern costs depends on its shape.
            text = compiled.pattern.decode("latin-1")
            compiled = re.compile(text, compiled.flags | re.ASCII)
        one = found.setdefault(
            (compiled.pattern, compiled.flags), FoundPattern(compiled.pattern, compiled.flags)
        )
        # Where one use may search, the pattern must stand it.
        one.methods = set() if one.places and not one.methods else one.methods | methods
        if not methods:
            one.methods = set()
        one.places.append(place)

    for path, module in loaded.items():
        file = path.relative_to(ROOT).as_posix()
        names, containers = _assigned(trees[path])
        seen: set[int] = set()
        for call in _calls(trees[path]):
            method = _method(call)
            place = f"{file}:{call.lineno}"
            lines = range(call.lineno, (call.end_lineno or call.lineno) + 1)
            at_import = [
                one for line in lines if line not in seen for one in recorded.get((file, line), ())
            ]
            if at_import:
                seen.update(lines)
                if name := names.get(call):
                    methods = uses.get((module.__name__, name), set())
                else:
                    methods = on_locals.get((module.__name__, containers.get(call, "")), set())
                for compiled in at_import:
                    add(compiled, methods if method == "compile" else {method}, place)
                continue
            if seen.issuperset(lines):
                continue
            for compiled in _evaluated(call, module, file, problems):
                add(compiled, set() if method == "compile" else {method}, place)
    return list(found.values()), problems


@cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    """Return a module's syntax tree, node by node."""
    return list(ast.walk(tree))


class _recording:  # noqa: N801
    """Record each pattern that the program makes meanwhile, with its file and line."""

    def __init__(self, recorded: dict[tuple[str, int], list[re.Pattern[str]]]) -> None:
        self._recorded = recorded
        self._compile = re._compile  # type: ignore[attr-defined]
        self._make_lazy = LazyPattern.__init__

    def __enter__(self) -> None:
        recording = self

        def make_lazy(pattern: LazyPattern, text: str, flags: int = 0) -> None:
            recording._make_lazy(pattern, text, flags)
            recording._record(text, flags)

        re._compile = self._record  # type: ignore[attr-defined]
        LazyPattern.__init__ = make_lazy  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        re._compile = self._compile  # type: ignore[attr-defined]
        LazyPattern.__init__ = self._make_lazy  # type: ignore[method-assign]

    def _record(self, pattern: Any, flags: Any) -> Any:
        compiled = self._compile(pattern, flags)
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename in (re.__file__, __file__):
            frame = frame.f_back
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            place = (path.relative_to(ROOT).as_posix(), frame.f_lineno)
            if not place[0].startswith(UNREAD):
                self._recorded.setdefault(place, []).append(compiled)
        return compiled


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield calls of ``re`` and of :class:`LazyPattern`, which are given a pattern."""
    for node in nodes(tree):
        if (isinstance(node, ast.Call) and _is_lazy(node.func)) or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in CALLS
        ):
            yield node


def _is_lazy(called: ast.expr) -> bool:
    return isinstance(called, ast.Name) and called.id == LazyPattern.__name__


def _method(call: ast.Call) -> str:
    """Return the method of ``re`` that a call stands for."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else "compile"


def _assigned(tree: ast.Module) -> tuple[dict[ast.Call, str], dict[ast.Call, str]]:
    """Return the module constant that holds a call's pattern: by itself, or among others."""
    alone, among = {}, {}
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name):
            continue
        for call in ast.walk(node.value):
            if isinstance(call, ast.Call):
                (alone if call is node.value else among)[call] = target.id
    return alone, among


def _methods_on_locals(trees: dict[Path, ast.Module]) -> dict[tuple[str, str], set[str]]:
    """Return the methods that are called on local names wherever a container of patterns is known."""
    methods: dict[tuple[str, str], set[str]] = {}
    for path, name in modules():
        called: set[str] = set()
        known = []
        for node in nodes(trees[path]):
            if isinstance(node, ast.ImportFrom):
                known += [(node.module, alias.name) for alias in node.names]
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                known.append((name, node.id))
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in CALLS - {"compile"}
                and not (isinstance(node.func.value, ast.Name) and _is_constant(node.func.value.id))
                # Not a string's own method.
                and node.args
                and not (node.func.attr == "split" and isinstance(node.args[0], ast.Constant))
            ):
                from_a_place = node.func.attr == "match" and len(node.args) > 1
                called.add(FROM_A_PLACE if from_a_place else node.func.attr)
        for key in known:
            methods[key] = methods.get(key, set()) | called
    return methods


def _is_constant(name: str) -> bool:
    return name == "re" or name.isupper()


def _uses(trees: dict[Path, ast.Module]) -> dict[tuple[str, str | None], set[str]]:
    """Return the methods that are called on each module constant; it has none if one cannot be seen."""
    names = {path: name for path, name in modules() if path in trees}
    used: dict[tuple[str, str | None], set[str]] = {}
    unseen: set[tuple[str, str | None]] = set()
    for path, tree in trees.items():
        origin = {}
        for node in nodes(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    origin[alias.asname or alias.name] = (node.module, alias.name)
        known: set[ast.AST] = set()
        for node in nodes(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                key = origin.get(node.value.id, (names[path], node.value.id))
                known.add(node.value)
                if node.attr != "pattern":
                    used.setdefault(key, set()).add(node.attr)
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "match"
                and len(node.args) > 1
                and isinstance(node.func.value, ast.Name)
            ):
                key = origin.get(node.func.value.id, (names[path], node.func.value.id))
                used.setdefault(key, set()).add(FROM_A_PLACE)
        for node in nodes(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in known:
                unseen.add(origin.get(node.id, (names[path], node.id)))
    return {key: methods for key, methods in used.items() if key not in unseen}


def _evaluated(
    call: ast.Call, module: ModuleType, file: str, problems: list[str]
) -> list[re.Pattern[Any]]:
    """Return the patterns of a call inside a function."""
    if not call.args:
        problems.append(f"{file}:{call.lineno}: give the pattern of re.{_method(call)} first")
        return []
    source = ast.unparse(call.args[0])
    flags = next((one.value for one in call.keywords if one.arg == "flags"), None)
    if flags is None:
        position = {"sub": 4, "subn": 4, "split": 3}.get(_method(call), 2)
        if _method(call) == "compile":
            position = 1
        flags = call.args[position] if len(call.args) > position else None
    found = []
    samples = SAMPLES.get((file, source.replace("\\\\", "\\")))
    for sample in eval(samples, dict(vars(module))) if samples else [{}]:
        scope = {**vars(module), **sample}
        try:
            given = eval(source, scope)
            how = eval(ast.unparse(flags), scope) if flags else 0
        except NameError as missing:
            problems.append(
                f"{file}:{call.lineno}: the pattern {source} is made of a local value ({missing}). Make"
                " it a constant of the module, or give sample values in SAMPLES of"
                " tests/properties/pattern_inventory.py"
            )
            continue
        found.append(given if isinstance(given, re.Pattern) else re.compile(given, how))
    return found
