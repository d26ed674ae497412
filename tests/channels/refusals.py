"""What a channel says when its platform refuses the bot, in whichever of its tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bot.bus import ChannelRefused


@contextmanager
def refused(match: str = "") -> Iterator[list[str]]:
    """Expect a refusal, alone or in exception groups; yield the list that gets its text."""
    texts: list[str] = []
    try:
        yield texts
    except (ChannelRefused, BaseExceptionGroup) as raised:
        error: BaseException = raised
        while isinstance(error, BaseExceptionGroup):
            (error,) = error.exceptions
        if not isinstance(error, ChannelRefused):
            raise
        texts.append(str(error))
    else:
        pytest.fail("the platform lets it in")
    assert re.search(match, texts[0])
