"""Made-up conversations of any size, and questions on them: the same in each run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from bot.tape.entries import TapeEntry, message

_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
_VOCABULARY = 50_000
_SYLLABLES = (
    "ba be bo da de do fa fi fo ga ge go ka ki ko la le lo ma mi mo na ne no pa pe po ra re ri ro sa "
    "se si ta te to va ve vo za ze zu shi cho tha wen lor mar tin ven der".split()
)
# What is said most, in a conversation as in the made-up vocabulary: by rank.
_COMMON = (
    "i you the to and a it is that of in we for was on have my so are with be this do not just what "
    "but at they me like know can good all about get there time see really when up go think one out "
    "day work how some now want time had going well back would right need got then people make home "
    "yes thanks today much week last new did great love could more other tomorrow night sure because "
    "here after way long again family friends look still next never weekend morning year school car "
    "house dinner doctor garden holiday train money job food music book city dog cat weather plan "
    "meeting birthday present kitchen phone ticket hotel summer winter coffee sister brother mother "
    "father office street market walk games film bike boat river mountain forest bread cheese paint"
).split()


class Talk:
    """Draws words as they are drawn in life: by Zipf's law, the n-th word 1/n as often as the first."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        made = random.Random(0)
        words = dict.fromkeys(_COMMON)
        while len(words) < _VOCABULARY:
            words["".join(made.choices(_SYLLABLES, k=made.randrange(2, 6)))] = None
        self._words = list(words)
        self._weights = list(accumulate(1 / rank for rank in range(1, len(self._words) + 1)))

    def messages(self, count: int) -> Iterator[TapeEntry]:
        """Yield messages of 4 to 40 words, a minute from one to the next, with ids from 2."""
        for number in range(count):
            text = " ".join(self._draw(self._chance.randrange(4, 41)))
            moment = (_BEGIN + timedelta(minutes=number)).isoformat(timespec="milliseconds")
            if number % 2:
                said = message("assistant", text, ts=moment)
            else:
                said = message(
                    "user", text, ts=moment, sent=moment, sender={"id": "1", "name": "Ada"}
                )
            yield TapeEntry(number + 2, said.kind, said.payload, said.meta)

    def question(self) -> str:
        """Return 4 to 10 words: two to four rarer ones among common ones."""
        rare = self._chance.randrange(2, 5)
        ranks = self._chance.choices(range(300, 20_000), k=rare)
        words = [self._words[rank] for rank in ranks]
        words += self._draw(self._chance.randrange(max(1, 4 - rare), 11 - rare))
        self._chance.shuffle(words)
        return " ".join(words)

    def _draw(self, count: int) -> list[str]:
        return self._chance.choices(self._words, cum_weights=self._weights, k=count)
