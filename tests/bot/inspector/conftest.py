"""The site over a program of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from web_rig import Rig, open_web


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """A site whose tapes a test fills by talking."""
    async with open_web() as rig:
        yield rig
