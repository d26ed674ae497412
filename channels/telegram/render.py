"""Answers, which are Markdown, as messages of Telegram.

Appending words to an answer changes none of its pieces but the last and adds pieces after it, as
long as the words are no markup that changes what was read before. The number of pieces of text
without markup never decreases.
"""

from __future__ import annotations

import logging

from channels.telegram.entities import Entity, Piece, split
from channels.text import check_limit, clean, pieces

__all__ = ["LIMIT", "Entity", "Piece", "plain", "render"]

LIMIT = 4096
"""The most UTF-16 code units of a text message (https://core.telegram.org/bots/api#sendmessage)."""

log = logging.getLogger(__name__)


def render(markdown: str, limit: int = LIMIT) -> list[Piece]:
    """Return the answer as texts with entities, to be sent in order and without a parse mode.

    Args:
        markdown: The answer, finished or not.
        limit: The most UTF-16 code units of one text.

    Returns:
        The pieces; none if the answer holds nothing that is visible.

    Raises:
        ValueError: The limit is too small for any text.
    """
    check_limit(limit)
    from channels.telegram.markup import read

    try:
        text, spans = read(clean(markdown))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        log.debug("an answer is shown without styles: its markup was not understood", exc_info=exc)
        return [Piece(text) for text in plain(markdown, limit)]
    return split(text, spans, limit)


def plain(markdown: str, limit: int = LIMIT) -> list[str]:
    """Return the answer as it was written, in pieces: for when Telegram refuses its entities.

    Raises:
        ValueError: The limit is too small for any text.
    """
    return pieces(markdown, limit)
