"""What is said in the measured conversations: the same words in each run."""

from __future__ import annotations

import json

LINE = (
    json.dumps({"id": 123_456, "kind": "message", "payload": {"content": "x" * 290}}).encode()
    + b"\n"
)

LONG_TERM = "\n".join(
    f"- The user's {thing} is {value}."
    for thing, value in [
        ("name", "Ada"),
        ("city", "Oslo"),
        ("employer", "Statkraft"),
        ("favourite dish", "fårikål"),
        ("dog's name", "Fenrik"),
        ("preferred language", "English, with short answers"),
    ]
)

_SUBJECTS = ("the boat", "our trip to Bergen", "the budget", "Fenrik's vaccination", "the garden")
_WISHES = ("What should I do first", "Can you remind me of the plan", "Please note the date")


def question(number: int) -> str:
    """Return what a person says in their message of that number."""
    subject = _SUBJECTS[number % len(_SUBJECTS)]
    wish = _WISHES[number % len(_WISHES)]
    return f"Message {number}: it is about {subject} again. {wish}, and how much did it cost us?"


def reply(number: int) -> str:
    """Return what the model answers."""
    subject = _SUBJECTS[number % len(_SUBJECTS)]
    return (
        f"Reply {number}: for {subject} the plan stands as agreed. First call the harbour office, "
        f"then pay the {100 + number % 900} crowns that are open; the date is in your notes."
    )
