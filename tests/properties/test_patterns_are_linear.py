"""Every regular expression of the program takes time linear in the text, whatever the text is.

All are found in the tree and driven with texts made against them, in a process of their own whose
processor time is measured and limited. How they are found is in ``pattern_inventory.py``; how the texts
are made in ``hostile_texts.py``; what counts as too much in ``text_costs.py``.
"""

from __future__ import annotations

import pytest
from sampling import many
from text_costs import findings

_ADVICE = (
    "Mend the pattern: begin an unbounded repeat with a look-behind for what it repeats, make it"
    " possessive, bound it, or write it as code."
)


@pytest.mark.slow
@pytest.mark.timeout(600)  # a minute of work, which shares the machine with other proofs
@pytest.mark.parametrize("texts", [3 * many(40), pytest.param(1_500, marks=pytest.mark.night)])
def test_no_text_makes_a_pattern_slow(texts: int) -> None:
    found, problems = findings("pattern_costs.py", str(texts))
    assert not problems, "\n".join(problems)
    assert not found, "\n".join([*found, _ADVICE])


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [
        r"\s+$",
        r"„([^“]*)“",
        r"x(\w+\s*)+:",
        pytest.param(r"(?<!\w)\w(?:[ .\-_*]{1,2}\w){5,200}(?!\w)", marks=pytest.mark.night),
        pytest.param(
            r"^((?:[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+)+)\[([ xX])\](?=\s)", marks=pytest.mark.night
        ),
        r"(?s)<a>\n(.*?)\n</a>",
        r"(?:a|b|ab)*c",
        r"[?！]\s*\s*,",
    ],
)
def test_a_pattern_that_is_not_linear_is_found(pattern: str) -> None:
    found, _ = findings("pattern_costs.py", "60", pattern, limit=2.0)
    assert len(found) == 1
    assert pattern[:10] in found[0].replace("\\\\", "\\")
