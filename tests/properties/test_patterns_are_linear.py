"""Every regular expression that a module holds takes time linear in the text, whatever the text is."""

from __future__ import annotations

import pytest
from text_costs import findings

ADVICE = (
    "Mend the pattern: begin an unbounded repeat with a look-behind for what it repeats, make it"
    " possessive, bound it, or write it as code."
)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_text_makes_a_pattern_slow() -> None:
    found = findings("pattern_costs.py", "200")
    assert not found, "\n".join([*found, ADVICE])


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [
        r"\s+$",
        r"„([^“]*)“",
        r"x(\w+\s*)+:",
        r"(?s)<a>\n(.*?)\n</a>",
        r"(?:a|b|ab)*c",
        r"[?！]\s*\s*,",
        r"(?<!\w)\w(?:[ .\-_*]{1,2}\w){5,200}(?!\w)",
        r"^((?:[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+)+)\[([ xX])\](?=\s)",
    ],
)
def test_a_pattern_that_is_not_linear_is_found(pattern: str) -> None:
    found = findings("pattern_costs.py", "60", pattern, limit=2.0)
    assert len(found) == 1
    assert pattern[:10] in found[0].replace("\\\\", "\\")
