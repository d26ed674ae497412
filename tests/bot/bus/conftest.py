"""Fixtures that the tests of the bus may use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from postgres_fleet import Fleet, fleet_on


@pytest.fixture
async def fleet(tmp_path: Path, url: str) -> AsyncIterator[Fleet]:
    async with fleet_on(url, tmp_path) as running:
        with anyio.fail_after(100):
            yield running
