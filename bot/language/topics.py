"""Classify a fact by topic, such as ``work`` or ``family``, and by slot.

Rule 1: the attribute or relation decides first, then the verb, then other words; the first match
    counts.
Rule 2: all values of one attribute have the same topic, so that a newer value keeps the older
    one's.
"""

from __future__ import annotations

from bot.language.fact_terms import RELATION_TERMS, fact_term, fact_terms
from bot.language.parsed_facts import ParsedFact

OTHER = "other"
_SLOTS = {
    "home": "home",
    "job": "work",
    "employer": "work",
    "name": "name",
    "called": "name",
    "age": "age",
    "born on": "birthday",
    "born in": "home",
}


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(fact_term, text.split()))


_PETS = _stems("pet dog cat hamster rabbit parrot bird fish horse turtle puppy kitten")
_BY_OWNER = (
    ("pets", _PETS),
    ("work", _stems("boss colleague manager job work office company salary meeting interview")),
    ("health", _stems("doctor dentist medication allergy blood therapist surgery")),
    ("contact", _stems("phone email address number")),
    ("birthday", _stems("birthday")),
    ("friends", _stems("friend neighbour neighbor roommate flatmate")),
    ("family", RELATION_TERMS | _stems("family parent sibling grandparent")),
    ("dates", _stems("appointment anniversary wedding exam deadline flight")),
    ("likes", _stems("favourite fav hobby")),
    ("home", _stems("house flat apartment landlord hometown city timezone")),
    ("things", _stems("car bike laptop password wifi computer phone")),
    ("goals", _stems("goal dream plan")),
)
_BY_VERB = (
    ("likes", _stems("like hate prefer")),
    ("home", _stems("live settle reside rent")),
    ("languages", _stems("speak")),
    ("food", _stems("eat drink cook bake")),
    ("studies", _stems("study learn")),
    ("work", _stems("work employ earn")),
    ("health", _stems("weigh suffer smoke")),
    ("things", _stems("drive wear own")),
    ("goals", _stems("want plan hope wish")),
)
_BY_WORDS = (
    ("health", _stems("allergic asthma diabetes migraine pill medicine mg ill sick pregnant")),
    (
        "food",
        _stems("eat drink cook bake diet recipe vegetarian vegan gluten lactose coffee tea meat")
        | _stems("breakfast lunch dinner"),
    ),
    # Eating fish is not having one.
    ("pets", _PETS - _stems("fish horse bird")),
    ("family", RELATION_TERMS | _stems("family child married divorced single")),
    ("dates", _stems("appointment anniversary wedding exam flight meeting")),
    ("work", _stems("job company office engineer nurse teacher")),
    ("travel", _stems("trip travel visit vacation")),
    ("hobbies", _stems("play piano guitar cello football run hike marathon sing paint")),
    ("home", _stems("house flat apartment born")),
)


def topic_of(fact: ParsedFact) -> str:
    """Return the topic of a fact; ``other`` if no rule matches."""
    if fact.slot in _SLOTS and not fact.subject:
        return _SLOTS[fact.slot]
    if fact.slot == "name" and set(fact.subject) <= {fact_term("name")}:
        return "name"
    owner_terms = set(fact.subject)
    verb = {fact.verb}
    all_terms = set(fact.terms | set(fact_terms(fact.rest)))
    for subjects, about in (
        (_BY_OWNER, owner_terms),
        (_BY_VERB, verb),
        (_BY_WORDS, all_terms),
    ):
        topic = next((name for name, signs in subjects if signs & about), "")
        if topic:
            return topic
    return OTHER
