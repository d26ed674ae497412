"""Fixtures that every test may use."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

# The same examples each time, however slow the machine is: what is found is found by everybody.
settings.register_profile(
    "tapebot",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tapebot")

# A shell starts what runs in its background without Ctrl-C, and so would every program be that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    """Tests run on the event loop that the program runs on."""
    return "asyncio"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a PostgreSQL server is a slow proof: each test of it takes a database of its own."""
    for item in items:
        if "postgres" in item.nodeid or "/database/" in item.nodeid:
            item.add_marker(pytest.mark.slow)
