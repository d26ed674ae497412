"""What a person may say, drawn by chance."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

Line = tuple[str, str]
"""A chat and a text."""

CHATS = ("one", "two")


def word(chance: random.Random) -> str:
    return f"K{chance.randrange(16**6):06X}"


def keep(chance: random.Random) -> str:
    return chance.choice(["remember that {} matters", "/memory add {}"]).format(word(chance))


def state(chance: random.Random) -> str:
    name, age = chance.choice(["Rex", "Bella", "Milo"]), chance.randrange(1, 15)
    return chance.choice(
        [
            f"My dog {name} is {age} years old.",
            f"I live in {chance.choice(['Oslo', 'Rome', 'Lima'])} and I like tea.",
            f"My sister {name} works as a baker.",
            f"Yesterday I bought {age} books.",
        ]
    )


def ask(chance: random.Random) -> str:
    return chance.choice(["How old is my dog?", "Where do I live?", "What do you know about me?"])


def lines(*makers: Callable[[random.Random], str]) -> Callable[[random.Random], list[Line]]:
    """Return a script of a burst, drawn from these, in one chat or in two."""

    def script(chance: random.Random) -> list[Line]:
        size = chance.choice([1, 1, 2, 3, 3])
        return [(chance.choice(CHATS), chance.choice(makers)(chance)) for _ in range(size)]

    return script


def always(*texts: str) -> Callable[[random.Random], str]:
    return lambda chance: chance.choice(texts)


def then(
    first: Callable[[random.Random], list[Line]], last: Sequence[str]
) -> Callable[[random.Random], list[Line]]:
    """Return a script that ends with one of these texts in its last chat."""

    def script(chance: random.Random) -> list[Line]:
        said = first(chance)
        return [*said, (said[-1][0], chance.choice(last))]

    return script
