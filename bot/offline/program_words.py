"""Show a person the program's own words that stand in a prompt: the prompt has them in English.

Rule 1: only a whole text that the program itself makes is translated; any other is shown as it is.
"""

from __future__ import annotations

import re
import string
from functools import cache

from bot.agent.texts import known_text
from bot.core.patterns import LazyPattern
from bot.core.reason_messages import REASONS
from bot.core.reasons import Reason

_LONGEST = 400
_LONGEST_VALUE = 120
_OUTCOME = LazyPattern(r"(?:Not done|Not run|Not saved|Not kept): ")


def translated(text: str) -> str:
    """Return a text in the current language if it is a reason's, or another message's."""
    reason = _reason_of_text(text)
    return known_text(text) if reason is None else f"{reason}"


def translated_outcome(result: str) -> str:
    """Return why a tool did nothing: the first line of its result, as a sentence."""
    line = _OUTCOME.sub("", result.strip().partition("\n")[0][:_LONGEST], count=1)
    told = translated(line.rstrip(".")) if line else ""
    return told if not told or told.endswith((".", "!", "?")) else f"{told}."


def _reason_of_text(text: str) -> Reason | None:
    """Return the reason of a text; its values are texts, which may be reasons themselves."""
    if len(text) > _LONGEST:
        return None
    for code, pattern in _patterns().items():
        if (hit := pattern.fullmatch(text)) is not None:
            values = {
                name: _reason_of_text(value) or value for name, value in hit.groupdict().items()
            }
            return Reason(code, **values)
    return None


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Return a pattern for each reason whose values are plain texts and stand among words."""
    found = {}
    for code, message in REASONS.items():
        parts = list(string.Formatter().parse(message))
        words = "".join(text for text, *_rest in parts)
        names = [name for _text, name, *_rest in parts if name is not None]
        formatted = any(spec or how for _text, _name, spec, how in parts)
        spoken = not names or re.search(r"[a-z]{2} [a-z]", words)
        if formatted or len(set(names)) < len(names) or not spoken:
            continue
        found[code] = re.compile(
            "".join(
                re.escape(text) + (rf"(?P<{name}>[^\n]{{1,{_LONGEST_VALUE}}}?)" if name else "")
                for text, name, *_rest in parts
            )
        )
    return found
