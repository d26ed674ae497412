"""Change variables in the text of a ``.env`` file. Pure.

Rule 1: everything else stays as it is, byte for byte: order, comments, blank lines, line endings.
Rule 2: what is written reads back as the same value.
Rule 3: of several lines that set a name the last one counts; setting it changes that one.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence

from dotenv.parser import Binding, parse_stream

from bot.core.patterns import LazyPattern

_PLAIN = LazyPattern(r"[A-Za-z0-9_./:@%+=,~-]+")
_BOM = "\ufeff"


def set_variables(
    text: str, values: Mapping[str, str | None], comments: Mapping[str, str] | None = None
) -> str:
    """Return the text of a ``.env`` file with variables set or removed.

    Args:
        text: The file's text.
        values: New values by name; None removes a variable.
        comments: What stands above a variable that is new, by name; without ``#``.
    """
    parts = _parts(text)
    for name, value in values.items():
        places = [place for place, part in enumerate(parts) if _is_named(part, name)]
        if value is None:
            for place in places:
                parts[place] = _Part(None, "")
        elif places:
            part = parts[places[-1]]
            parts[places[-1]] = _Part(part.key, _with_value(part.text, quote_value(value)))
        else:
            _insert(parts, name, quote_value(value), (comments or {}).get(name, ""))
    return "".join(part.text for part in parts)


def variables(text: str) -> list[str]:
    """Return the names that a ``.env`` file sets."""
    return [part.key for part in _parts(text) if part.key is not None]


def quote_value(value: str) -> str:
    """Return a value as it stands in a ``.env`` file, quoted where it must be.

    Plain values stay bare: Docker does not understand quotes.
    """
    if _PLAIN.fullmatch(value) or not value:
        return value
    # python-dotenv expands ${NAME} even in quotes; this expands to a dollar sign.
    literal = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "${:-$}{")
    return f"'{literal}'"


class _Part:
    """A piece of the file: one that sets a variable, or another line."""

    def __init__(self, key: str | None, text: str) -> None:
        self.key = key
        self.text = text


def _parts(text: str) -> list[_Part]:
    bom, body = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    parts = [_Part(None, bom)]
    for binding in parse_stream(io.StringIO(body, newline="")):
        parts += _split(binding)
    return parts


def _split(binding: Binding) -> Iterable[_Part]:
    """Yield the blank lines before a binding, and the binding."""
    text = binding.original.string
    begin = len(text) - len(text.lstrip())
    cut = max(text.rfind("\n", 0, begin), text.rfind("\r", 0, begin)) + 1
    if cut:
        yield _Part(None, text[:cut])
    yield _Part(None if binding.error else binding.key, text[cut:])


def _is_named(part: _Part, name: str) -> bool:
    """Return whether a piece sets a name; tapebot reads the names of its own in any case."""
    return part.key is not None and part.key.upper() == name.upper()


def _with_value(text: str, value: str) -> str:
    """Return a line with another value; what stands before and after the value stays."""
    head, _, rest = text.partition("=")
    body = rest.lstrip(" \t\f\v")
    blanks = rest[: len(rest) - len(body)]
    after = _after_value(body)
    return f"{head}={blanks}{value}{after}"


def _after_value(body: str) -> str:
    """Return what follows the old value: blanks, a comment, the end of the line."""
    quote = body[:1]
    if quote in ("'", '"'):
        place = 1
        while place < len(body) and body[place] != quote:
            place += 2 if body[place] == "\\" else 1
        return body[place + 1 :]
    ends = [place for place in (body.find("\n"), body.find("\r")) if place >= 0]
    end = min(ends, default=len(body))
    line = body[:end]
    comment = next(
        (
            place
            for place, sign in enumerate(line)
            if sign == "#" and (place == 0 or line[place - 1].isspace())
        ),
        len(line),
    )
    kept = line[:comment].rstrip()
    if not kept and comment < len(line):
        # Without a value, the comment needs a space to stay one.
        return " " + line[comment:] + body[end:]
    return body[len(kept) :]


def _insert(parts: list[_Part], name: str, value: str, comment: str) -> None:
    """Add a variable: below its example in a comment, or at the end."""
    end = "\r\n" if any("\r\n" in part.text for part in parts) else "\n"
    place = _example(parts, name)
    if place is not None:
        before = parts[place].text
        gap = "" if before.endswith(("\n", "\r")) else end
        parts[place] = _Part(None, before + gap)
        parts.insert(place + 1, _Part(name, f"{name}={value}{end}"))
        return
    whole = "".join(part.text for part in parts).removeprefix(_BOM)
    gap = "" if not whole or whole.endswith(("\n", "\r")) else end
    above = f"# {comment}{end}" if comment else ""
    blank = end if whole and comment else ""
    parts.append(_Part(None, gap + blank + above))
    parts.append(_Part(name, f"{name}={value}{end}"))


def _example(parts: Sequence[_Part], name: str) -> int | None:
    """Return the place of the line ``#NAME=...``."""
    for place, part in enumerate(parts):
        line = part.text.strip()
        if part.key is None and line.startswith("#"):
            inside = line.lstrip("# ")
            if inside.startswith(f"{name}=") and "\n" not in line and "\r" not in line:
                return place
    return None
