"""The garbage collector rests while modules load, leaves them out later, and looks at the rest often."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

from bot.core.garbage import loading_modules


@pytest.fixture(autouse=True)
def _the_collector_is_as_before():
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


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


class Part:
    """It refers to itself, as the parts of a session refer to each other."""

    def __init__(self) -> None:
        self.whole = [self]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="it looks at a slice of all each time")
def test_what_is_old_and_unused_is_freed_while_a_few_sessions_are_loaded():
    """A session is ended while others are; by the usual rules hundreds would pile up until one search frees them."""
    with loading_modules():
        pass
    part = Part()
    gc.collect()
    # The reference itself is never asked: an answer would keep the part for as long as it is looked at.
    freed: list[weakref.ref[Part]] = []
    _watched = weakref.ref(part, freed.append)
    del part
    young, middle, _ = gc.get_threshold()
    made: list[list[int]] = []
    # By the usual rules it would be looked at after ten collections of the middle generation.
    while not freed and len(made) < 11 * young * middle:
        made.append([])
    assert len(made) < 6 * young * middle
