"""Reasons of decisions, which are recorded as a code with values and shown in the reader's language.

A tape is free of language: an entry holds ``{"code": "fact_repeated", "fact": 3}``. ``Reason.as_json``
writes that and ``parse_reason`` reads it. An entry from before there were codes holds a text, which is
shown as it is.

A ``Reason`` is its English text, for the model and for logs. Where it is formatted into a message,
``_("Not added: {reason}.", reason=reason)``, it appears in the current language; ``{reason!s}`` is
English in every language.
"""

from __future__ import annotations

from typing import Any, Self

from bot.core.i18n import _, format_number
from bot.core.reason_messages import REASONS

_BETWEEN = "; "
_AMOUNTS = frozenset({"limit", "length"})
"""Values that are amounts: large ones are written with separators."""
_MOST = 10**15
"""Larger numbers, which nobody counted, are shown as they are: a tape may hold any."""


class Reason(str):
    """Why a decision was made: a code with values, and its English text.

    Args:
        code: A code of ``REASONS``.
        values: What its message names: texts, numbers or other reasons.

    Attributes:
        code: The code.
        values: The values.
    """

    __slots__ = ("code", "values")

    code: str
    values: dict[str, Any]

    def __new__(cls, code: str, /, **values: Any) -> Self:
        """Return the reason; its message must fit the values."""
        plain = {name: _plain(value) for name, value in values.items()}
        plain |= {name: f"{values[name]:,}" for name in _amounts(values)}
        self = super().__new__(cls, REASONS[code].format_map(plain))
        self.code, self.values = code, values
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """Return what makes a copy."""
        return (self.code,), self.values

    def __format__(self, spec: str) -> str:
        """Return the text in the current language."""
        if self.code == "several":
            text = _BETWEEN.join(f"{reason}" for reason in self.values["reasons"])
        else:
            amounts = {name: format_number(self.values[name]) for name in _amounts(self.values)}
            text = _(REASONS[self.code], **{**self.values, **amounts})
        return format(text, spec)

    def as_json(self) -> dict[str, Any]:
        """Return it as an entry records it."""
        return {"code": self.code, **{name: _as_json(value) for name, value in self.values.items()}}


def join_reasons(reasons: list[str]) -> str:
    """Return several reasons as one."""
    return Reason("several", reasons=reasons) if len(reasons) != 1 else reasons[0]


def split_reasons(reason: str) -> list[str]:
    """Return the parts of what ``join_reasons`` returned, or of a recorded text."""
    if isinstance(reason, Reason):
        return list(reason.values["reasons"]) if reason.code == "several" else [reason]
    return [part for part in reason.split(_BETWEEN) if part]


def reason_json(reason: str) -> object:
    """Return a reason as an entry records it; a text that is not the program's own as it is."""
    return _as_json(reason)


def parse_reason(record: object) -> str:
    """Read a recorded reason: a code with values, or the text of an entry without codes."""
    if not isinstance(record, dict):
        return record if isinstance(record, str) else ""
    values = {name: _parsed(value) for name, value in record.items() if isinstance(name, str)}
    code = str(values.pop("code", ""))
    if code == "several" and not isinstance(values.get("reasons"), list):
        return code
    try:
        return Reason(code, **values)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError):
        # A later version wrote it, or no version did.
        return code


def reason_text(record: object) -> str:
    """Return a reason, recorded or not, in the current language."""
    return f"{parse_reason(record)}"


def _amounts(values: dict[str, Any]) -> list[str]:
    found = {name: values[name] for name in _AMOUNTS & values.keys()}
    return [name for name, one in found.items() if type(one) is int and abs(one) < _MOST]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return _BETWEEN.join(map(str, value))
    return str(value) if isinstance(value, Reason) else value


def _as_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    return value.as_json() if isinstance(value, Reason) else value


def _parsed(value: object) -> object:
    if isinstance(value, list):
        return [_parsed(one) for one in value]
    return parse_reason(value) if isinstance(value, dict) else value


def reason_of(error: Exception) -> str:
    """Return what a refusal says, as a reason if it holds one."""
    told = error.args[0] if error.args else ""
    return told if isinstance(told, Reason) else str(error)
