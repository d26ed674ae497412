"""Measures every function that is given a text: ``function_costs.py FIRST PROGRESS``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from function_inventory import functions, hostile_texts
from text_costs import Work, main

_TRIED = 2_000


def _ending(run: Callable[[str], object]) -> Callable[[str], object]:
    def ended(text: str) -> None:
        # A refusal is an end, too; its cost is what counts.
        with contextlib.suppress(Exception):
            run(text)

    return ended


if __name__ == "__main__":
    driven, problems = functions()
    texts = hostile_texts()
    main([Work(name, _ending(run), texts) for name, run in driven], problems, _TRIED)
