"""What the tests of the memory bus begin with."""

from __future__ import annotations

import pytest
from problem_rig import Talk
from semantic_rig import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.fixture
async def talk() -> Talk:
    return await Talk().open()
