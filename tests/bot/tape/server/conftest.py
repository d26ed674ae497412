"""Fixtures of tape servers that several files of this folder test."""

from __future__ import annotations

import pytest
from tape_server_rig import TAPE, serving


@pytest.fixture
async def rig(tmp_path):
    """A server that takes no more than 100,000 bytes at once."""
    async with serving(tmp_path, most=100_000) as rig:
        yield rig


@pytest.fixture
async def client(rig):
    """A client that may do everything, and has made the tape."""
    async with rig.client() as client:
        assert (await client.post("/v1/tapes", json={"tape": TAPE})).status_code == 200
        yield client
