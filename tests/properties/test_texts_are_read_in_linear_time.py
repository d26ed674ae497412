"""Every function that is given a text takes time at most n log n in it, whatever the text is.

All that can be are driven with texts of every kind that is hard for somebody, in a process of their own whose
processor time is measured and limited; a third party's code with them.
"""

from __future__ import annotations

import pytest
from function_inventory import functions
from text_costs import findings


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(1800)
def test_no_text_makes_a_function_slow() -> None:
    assert len({name for name, _ in functions()}) > 1_000
    found, _ = findings("function_inventory.py")
    advice = "Mend the function, or bound what comes in and say so in function_inventory.py."
    assert not found, "\n".join([*found, advice])
