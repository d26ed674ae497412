"""The garbage collector rests while modules load, and only then."""

from __future__ import annotations

import gc

import pytest

from bot.core.garbage import loading_modules


@pytest.fixture(autouse=True)
def _nothing_stays_frozen():
    yield
    gc.unfreeze()


def test_what_is_made_while_modules_load_is_left_out_of_later_collections():
    """A full collection would go through it for as long as the process lives."""
    with loading_modules():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 1_000


def test_a_module_that_cannot_be_loaded_leaves_the_collector_on():
    """The program may go on without it."""
    with pytest.raises(ModuleNotFoundError), loading_modules():
        import bot.no_such_module  # noqa: F401
    assert gc.isenabled()
