"""Does a text serve what matters: the north stars and the priorities? Pure.

Rule 1: a text serves a goal as far as it names it. Of a goal's telling words, four at most are asked for:
    ``min(1, words named / min(words of the goal, 4))``, so that half of it, which the gate wants by
    default, is one word of a goal of one or two, and two words of a longer one.
Rule 2: of several goals, the one that it serves best counts; where there are none, or none that says
    anything, everything serves.
Rule 3: words are compared by their stems, whatever their endings and accents, and of the words that the
    gate's tables know in several languages by what they mean. Small words ("the", "my") do not count; where
    no spaces stand between words, pairs of neighbouring signs count as words.
Rule 4: it looks at words, not at sense: "less family time" names ``family``, and "savings" does not name
    ``money``. So goals are best put into the words in which one speaks of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.language.lexicon import TermSet, content_terms, fold_text
from bot.memory.bus.compartments import Compartments
from bot.memory.stemming import stemmed_words

NORTH_STARS_KEY = "north_stars"
PRIORITIES_KEY = "priorities"

GOAL_KEYS = (NORTH_STARS_KEY, PRIORITIES_KEY)
"""Keys of shared reference that hold goals, each a list of texts."""

_MOST = 4
"""Words of a goal that are asked for."""


def alignment_score(text: str, goals: Sequence[str]) -> float:
    """Return how far a text serves the goal that it serves best, 0 to 1; 1 where there are no goals."""
    wanted = [found for goal in goals if (found := _telling(goal))]
    if not wanted:
        return 1.0
    said = TermSet([*content_terms(fold_text(text)), *stemmed_words(text)])
    return max(
        min(1.0, sum(one in said for one in goal) / min(len(goal), _MOST)) for goal in wanted
    )


def collect_goals(*compartments: Compartments) -> list[str]:
    """Return the north stars, and then the priorities, of all these scopes, each once."""
    found = [
        text
        for key in GOAL_KEYS
        for held in compartments
        if (one := held.references.get(key)) is not None and isinstance(one.value, list)
        for text in one.value
        if isinstance(text, str)
    ]
    return list(dict.fromkeys(found))


def _telling(goal: str) -> list[str]:
    """Return the words of a goal that say something, each once; none where it has only small ones."""
    return list(dict.fromkeys(content_terms(fold_text(goal)) or stemmed_words(goal)))
