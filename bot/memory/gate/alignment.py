"""Score how well a text serves the north stars and priorities. Pure.

Rule 1: the score for a goal is the share of its content words in the text, with at most four
    required: ``min(1, words named / min(words of the goal, 4))``. The gate's default of 0.5 is one
    word of a goal of one or two, and two words of a longer one.
Rule 2: of several goals the best score counts; without goals, or if none has content words, it is
    1.
Rule 3: words are compared by stem, ignoring endings and accents, and by meaning if the lexicon
    knows them in several languages. Small words ("the", "my") do not count; in scripts without
    spaces, pairs of neighbouring characters count as words.
Rule 4: only words are compared, not meaning: "less family time" names ``family``, and "savings"
    does not name ``money``. Goals work best in the words that people use in conversation.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.language.claim_terms import TermSet, content_terms
from bot.language.folding import fold_text
from bot.memory.records.compartment_records import GOAL_KEYS
from bot.memory.records.compartments import Compartments
from bot.memory.records.stemming import stemmed_words

_MOST = 4
"""Content words of a goal that a text must name for the full score."""


def alignment_score(text: str, goals: Sequence[str]) -> float:
    """Return the text's score for the goal it serves best, 0 to 1; 1 if there are no goals."""
    wanted = [found for goal in goals if (found := _telling(goal))]
    if not wanted:
        return 1.0
    term_set = TermSet([*content_terms(fold_text(text)), *stemmed_words(text)])
    return max(
        min(1.0, sum(one in term_set for one in goal) / min(len(goal), _MOST)) for goal in wanted
    )


def collect_goals(*compartments: Compartments) -> list[str]:
    """Return the north stars, then the priorities, of all given scopes, without duplicates."""
    found = [
        text
        for key in GOAL_KEYS
        for held in compartments
        if (reference := held.references.get(key)) is not None and isinstance(reference.value, list)
        for text in reference.value
        if isinstance(text, str)
    ]
    return list(dict.fromkeys(found))


def _telling(goal: str) -> list[str]:
    """Return a goal's content words without duplicates; empty if it has only small words."""
    return list(dict.fromkeys(content_terms(fold_text(goal)) or stemmed_words(goal)))
