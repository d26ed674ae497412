"""Find quotes of what was said in a private problem, in messages of other problems."""

from __future__ import annotations

from bot.core.patterns import LazyPattern
from bot.memory.records.evidence import is_local_only
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.service import TapeService

WITHHELD = "(a quote from a private problem, which is not shown here)"

_WORDS = LazyPattern(r"\w+")
_SHARE = 0.8
"""Share of a quote's words that one message has: platforms cut quotes and drop their formatting."""


async def quotes_private_words(tape: TapeService, fold: SessionFold, quote: str | None) -> bool:
    """Return whether a quote is of a message that only private models may see.

    In a private problem, and in a chat without one, nothing is read.
    """
    if not quote or fold.is_private or not fold.compartments.has_private_problem:
        return False
    words = _words(quote)
    async for entry in tape.read_back():
        if entry.kind == "message" and is_local_only(entry):
            said = _words(str(entry.payload.get("content") or ""))
            if len(words & said) >= _SHARE * len(words):
                return True
    return False


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(text.lower()))
