"""Find texts in source files that look like words for people and are not marked for translation.

A text is a string or f-string of at least two words, or one word that ends as a sentence does. A
string that people never read is left out by what is done with it: docstrings, logs, patterns, keys,
comparisons, errors of programmers. Of the others, a comment in its statement or above it says who
reads it, such as ``# for the model``, or its file is in ``OTHER_READERS``.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

MARKING = frozenset({"_", "N_", "ngettext", "pgettext"})

_READER = re.compile(r"#.* for (?:the model|the log|the tape|the parser|programs|programmers)\b")
"""A comment that says who reads a text, if people do not."""

_UNREAD_CALLS = frozenset(
    """logger.* log.* LazyPattern re.compile re.match re.search re.split re.fullmatch re.sub Field setting TypeVar
    *.startswith *.endswith *.removeprefix *.removesuffix *.replace *.split *.partition *.strip *.get *.count *.encode
    *.submit *.execute *.fetch *.transact *.strftime *.strptime getattr setattr hasattr cast NewType
    Counter.* Gauge Histogram warnings.warn textwrap.dedent RuntimeError ValueError TypeError KeyError
    AssertionError NotImplementedError LookupError AttributeError StopIteration ImportError OSError""".split()
)
"""Calls whose strings no person reads: ``*.name`` is a method of whatever object."""

_WORD = r"[^\W\d_]{2,}"
_TWO_WORDS = re.compile(rf"{_WORD}[,;:.!?'’\")`*]*\s+[(\"'`*]*{_WORD}")
_FRAGMENT = re.compile(rf"(?:\0\s+[(\"'`*]*{_WORD})|(?:{_WORD}[,;:.!?'’\")`*]*\s+[(\"'`*]*\0)")
"""A word beside a value of an f-string."""
_SENTENCE = re.compile(r"\s*[A-Z][a-z]+[.!?…]\s*")
_CODE = re.compile(
    r"\s*(?:select\b|insert into |update \S+ |delete from |create (?:table|schema|database) |with \w+ as "
    r"|set transaction |listen |truncate |pip install |chmod )|\s*<\??[a-z!/]"
)
"""SQL, commands of the system, or markup."""
_COMMAND = re.compile(r"(?:/|tapebot )[a-z_]+(?:[ .][a-z0-9\0.\"…]+)*(?: [A-Z]+)?")
"""A command, as buttons send it."""


_FORM = re.compile(r"(?:[a-z|]+ )*+[A-Z]+(?: (?:[A-Z]+|\[[A-Z ]+\]))*+(?<![a-z] I)")
"""Arguments of a command, such as ``set KEY VALUE``."""
_CHOICES = re.compile(r"(?=[^|]*\|)(?:\[?[A-Za-z|]+[\].]*+(?: |$))+")
"""Arguments of a command, such as ``off ID|here|all``."""
_CODE_SPAN = re.compile(r"`[^`]*+`")


def looks_like_words(text: str, *, values: bool = False) -> bool:
    r"""Say whether a string is a text for people; ``\0`` stands for a value in it."""
    text = _CODE_SPAN.sub("", text).removeprefix("tapebot: ")
    if _CODE.match(text) or _COMMAND.fullmatch(text) or _FORM.fullmatch(text):
        return False
    if _CHOICES.fullmatch(text):
        return False
    found = _TWO_WORDS.search(text) or _SENTENCE.fullmatch(text)
    return bool(found or (values and _FRAGMENT.search(text)))


def unmarked_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of what is not marked in a file."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    for node, text, values, (first, last) in _texts(ast.parse(source)):
        if not looks_like_words(text, values=values):
            continue
        around = lines[first - 1 : last]
        # The comment may also stand alone, above the statement or within it above the text.
        around += [
            line for line in lines[max(first - 2, 0) : first - 1] if line.lstrip()[:1] == "#"
        ]
        if not any(map(_READER.search, around)):
            yield node.lineno, text.replace("\0", "{}")


def _texts(tree: ast.AST) -> Iterator[tuple[ast.expr, str, bool, tuple[int, int]]]:
    r"""Yield the strings that a person may read, with ``\0`` for each value of an f-string.

    Beside it, whether it is an f-string, and the first and last line of its statement.
    """
    waiting: list[tuple[ast.AST, tuple[int, int] | None]] = [(tree, None)]
    while waiting:
        node, lines = waiting.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        if isinstance(node, ast.stmt):
            simple = not hasattr(node, "body")
            lines = (node.lineno, node.end_lineno or node.lineno) if simple else None
        if isinstance(node, ast.expr) and lines is None:
            lines = (node.lineno, node.end_lineno or node.lineno)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and lines is not None:
                yield node, node.value, False, lines
        elif isinstance(node, ast.JoinedStr):
            parts = [one.value if isinstance(one, ast.Constant) else "\0" for one in node.values]
            assert lines is not None
            yield node, "".join(map(str, parts)), True, lines
            values = [one for one in node.values if isinstance(one, ast.FormattedValue)]
            waiting += [(one.value, lines) for one in values]
        else:
            waiting += [(one, lines) for one in _read_parts(node)]


def _read_parts(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node whose strings a person may read."""
    if isinstance(node, ast.Compare | ast.Subscript | ast.Assert):
        parts = [one for one in ast.iter_child_nodes(node) if not _is_string(one)]
        return [one for one in parts if not isinstance(node, ast.Assert) or one is node.test]
    if isinstance(node, ast.Set):
        return [one for one in node.elts if not _is_string(one)]
    if isinstance(node, ast.Dict):
        return list(node.values)
    if isinstance(node, ast.Call):
        name = _called(node.func)
        if name in MARKING:
            return [one.value for one in node.keywords]
        if isinstance(node.func, ast.Attribute) and _is_string(node.func.value):
            return list(node.args)  # a method of the string itself, such as "a b c".split()
        if name in _UNREAD_CALLS or f"{name.partition('.')[0]}.*" in _UNREAD_CALLS:
            return []
        if f"*.{name.rpartition('.')[2]}" in _UNREAD_CALLS and "." in name:
            return [node.func]
    if isinstance(node, ast.arg | ast.AnnAssign):
        return [node.value] if isinstance(node, ast.AnnAssign) and node.value else []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body]
    return list(ast.iter_child_nodes(node))


def _called(function: ast.expr) -> str:
    """Return the dotted name of what is called; what is computed is ``?``."""
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute):
        return f"{_called(function.value)}.{function.attr}"
    return "?"


def _is_string(node: ast.AST) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return all(map(_is_string, node.elts))
    return isinstance(node, ast.Constant | ast.JoinedStr)
