"""Every function that is given a text takes time at most n log n in it, whatever the text is.

All are found by importing the program and driven with texts of every kind that is hard for somebody, in a
process of their own whose processor time is measured and limited; a third party's code with them. How they
are found, and what is left out and why, is in ``function_inventory.py``.
"""

from __future__ import annotations

import pytest
from function_inventory import functions
from text_costs import findings

_ADVICE = (
    "Mend the function, or bound what comes in and say so in LEFT_OUT of"
    " tests/properties/function_inventory.py."
)


@pytest.mark.slow
def test_each_function_that_is_given_a_text_is_driven_or_left_out_for_a_reason() -> None:
    assert not functions()[1]


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(1800)
def test_no_text_makes_a_function_slow() -> None:
    found, _ = findings("function_costs.py")
    assert not found, "\n".join([*found, _ADVICE])
