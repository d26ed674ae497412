"""Every function that is given a text takes time at most n log n in it, whatever the text is.

All that can be are driven with texts of every kind that is hard for somebody, in a process of their own whose
processor time is measured and limited; a third party's code with them.
"""

from __future__ import annotations

import re

import pytest
from function_inventory import functions, modules
from sampling import some
from text_costs import findings

ADVICE = "Mend the function, or bound what comes in and say so in function_inventory.py."


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_text_makes_a_function_slow() -> None:
    names = modules()
    assert len({name for name, _ in functions(names)}) > 1_000
    found = findings("function_inventory.py", *some(names))
    assert not found, "\n".join([*found, ADVICE])


def walks_back(text: str) -> list[str]:
    """A pattern that tries each of many spaces as the beginning of the last ones."""
    return re.findall(r"\s+$", text)


def never_ends(text: str) -> bool:
    return re.match(r"(?:\w|\w\w)*!", text) is not None


@pytest.mark.slow
def test_a_function_that_is_not_linear_is_found() -> None:
    found = findings("function_inventory.py", __name__, limit=1.0)
    assert {line.partition(":")[0].rpartition(".")[2] for line in found} == {
        "walks_back",
        "never_ends",
    }
