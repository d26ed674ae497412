"""Translate simple German, French and Spanish sentences into English by patterns. Pure.

Rule 1: a statement becomes an English sentence that keeps the person's own words for names and
    things.
Rule 2: a question becomes the English terms that such sentences hold.
Rule 3: a sentence that no pattern matches is not translated.
"""

from __future__ import annotations

import re

from bot.core.patterns import LazyPattern
from bot.language.language_detection import dominant_language, small_word_counts

_FIRST_PERSON = LazyPattern(
    r"\b(?:ich|mein\w*|wir|unser\w*|je|j'|mon|ma|mes|nous|notre|yo|mi|mis|me|tengo|soy|vivo|estoy|somos"
    r"|io|mio|mia|sono|abito|eu|meu|minha|sou|moro|ik|mijn|wij|jag|min|mitt|jeg|minun|benim|ben"
    r"|nazywam|mam|jestem|mieszkam)\b",
    re.IGNORECASE,
)

_STATEMENTS: tuple[tuple[str, str], ...] = (
    # German
    (r"(?:ich hei(?:ß|ss)e|mein name ist) (.+)", "{who}'s name is {0}"),
    (r"ich (?:wohne|lebe) (?:jetzt |nun |seit \w+ )?in (.+)", "{who} lives in {0}"),
    (r"(?:ich bin|wir sind) nach (.+?) (?:um)?gezogen", "{who} moved to {0}"),
    (r"ich (?:mag|liebe) keine?n? (.+)", "{who} does not like {0}"),
    (r"ich (?:mag|liebe) (.+) nicht", "{who} does not like {0}"),
    (r"ich (?:esse|trinke|mag|liebe) (?:sehr )?(?:gerne? |am liebsten )?(.+)", "{who} likes {0}"),
    (r"ich hasse (.+)", "{who} hates {0}"),
    (r"ich bin (\d{1,3})(?: jahre alt)?", "{who} is {0} years old"),
    (r"ich arbeite als (.+)", "{who} works as {0}"),
    (r"ich arbeite (?:bei|für) (.+)", "{who} works at {0}"),
    (r"ich bin allergisch gegen (.+)", "{who} is allergic to {0}"),
    (r"mein geburtstag ist (?:am )?(.+)", "{who}'s birthday is {0}"),
    (r"ich habe am (.+) geburtstag", "{who}'s birthday is {0}"),
    (r"meine? lieblings(\w+) ist (.+)", "{who}'s favourite {thing} is {1}"),
    # French
    (r"(?:je m'appelle|mon (?:nom|prénom) est) (.+)", "{who}'s name is {0}"),
    (r"(?:j'habite|je vis) (?:maintenant )?(?:à|en|au|aux) (.+)", "{who} lives in {0}"),
    (r"j'ai déménagé (?:à|en|au|aux) (.+)", "{who} moved to {0}"),
    (r"je n'aime (?:pas|plus) (?:le |la |les |l')?(.+)", "{who} does not like {0}"),
    (r"(?:j'aime|j'adore) (?:beaucoup |bien )?(?:le |la |les |l')?(.+)", "{who} likes {0}"),
    (r"je déteste (?:le |la |les |l')?(.+)", "{who} hates {0}"),
    (r"j'ai (\d{1,3}) ans", "{who} is {0} years old"),
    (r"je travaille comme (.+)", "{who} works as {0}"),
    (r"je travaille chez (.+)", "{who} works at {0}"),
    (r"je suis allergique (?:à la|à l'|à|au|aux) ?(.+)", "{who} is allergic to {0}"),
    (r"mon anniversaire est (?:le )?(.+)", "{who}'s birthday is {0}"),
    (r"(?:mon|ma) (\w+) préférée? est (?:le |la |l')?(.+)", "{who}'s favourite {thing} is {1}"),
    # Spanish
    (r"(?:yo )?(?:me llamo|mi nombre es) (.+)", "{who}'s name is {0}"),
    (r"(?:yo )?(?:ahora )?vivo (?:ahora )?en (.+)", "{who} lives in {0}"),
    (r"me mudé a (.+)", "{who} moved to {0}"),
    (r"(?:a mí )?no me gustan? (?:el |la |los |las )?(.+)", "{who} does not like {0}"),
    (
        r"(?:a mí )?me (?:gustan?|encantan?) (?:mucho )?(?:el |la |los |las )?(.+)",
        "{who} likes {0}",
    ),
    (r"odio (?:el |la |los |las )?(.+)", "{who} hates {0}"),
    (r"(?:yo )?tengo (\d{1,3}) años", "{who} is {0} years old"),
    (r"(?:yo )?trabajo como (.+)", "{who} works as {0}"),
    (r"(?:yo )?trabajo (?:en|para) (.+)", "{who} works at {0}"),
    (r"soy alérgic[oa] (?:a la|a los|a las|al|a) (.+)", "{who} is allergic to {0}"),
    (r"mi cumpleaños es (?:el )?(.+)", "{who}'s birthday is {0}"),
    (r"mi (\w+) (?:favorit|preferid)[oa] es (?:el |la )?(.+)", "{who}'s favourite {thing} is {1}"),
)

_QUESTIONS: tuple[tuple[str, str], ...] = (
    (r"wie hei(?:ß|ss)e ich|(?:wie|was) ist mein name|wer bin ich", "name"),
    (r"wo (?:wohne|lebe) ich", "live"),
    (r"was (?:mag|liebe|esse|trinke) ich", "like"),
    (r"(?:mag|liebe) ich (.+)", "like {0}"),
    (r"wie alt bin ich", "age"),
    (r"wann .*geburtstag", "birthday"),
    (r"(?:was|welche\w*) ist meine? lieblings(\w+)", "favourite {thing}"),
    (r"(?:als )?was (?:arbeite|bin) ich|was ist mein (?:job|beruf)|wo arbeite ich", "job"),
    (r"(?:gegen was|wogegen) bin ich allergisch", "allergic"),
    (r"comment (?:est-ce que )?je m'appelle|quel est mon (?:nom|prénom)|qui suis-je", "name"),
    (r"où (?:est-ce que j'habite|j'habite|habité-je|est-ce que je vis)", "live"),
    (r"qu'est-ce que j'(?:aime|adore)", "like"),
    (r"quel âge (?:ai-je|j'ai|est-ce que j'ai)", "age"),
    (r"quand est mon anniversaire", "birthday"),
    (r"(?:quel|quelle) est (?:mon|ma) (\w+) préférée?", "favourite {thing}"),
    (r"quel est mon (?:travail|métier)|où est-ce que je travaille", "job"),
    (r"cómo me llamo|cuál es mi nombre|quién soy", "name"),
    (r"dónde vivo", "live"),
    (r"qué me gusta", "like"),
    (r"cuántos años tengo", "age"),
    (r"cuándo es mi cumpleaños", "birthday"),
    (r"cuál es mi (\w+) (?:favorit|preferid)[oa]", "favourite {thing}"),
    (r"(?:en qué|dónde) trabajo|cuál es mi trabajo", "job"),
)

_THINGS = {
    "farbe": "colour", "couleur": "colour", "color": "colour", "essen": "food", "plat": "dish",
    "comida": "food", "tier": "animal", "film": "film", "película": "film", "buch": "book",
    "livre": "book", "libro": "book", "musik": "music", "musique": "music", "música": "music",
    "stadt": "city", "ville": "city", "ciudad": "city", "getränk": "drink", "boisson": "drink",
    "bebida": "drink", "sport": "sport", "deporte": "sport",
}  # fmt: skip

_COMPILED_STATEMENTS = [(LazyPattern(pattern, re.IGNORECASE), to) for pattern, to in _STATEMENTS]
_COMPILED_QUESTIONS = [(LazyPattern(pattern, re.IGNORECASE), to) for pattern, to in _QUESTIONS]


def _fill(template: str, groups: tuple[str | None, ...], who: str) -> str:
    values = [(group or "").strip(" .!?") for group in groups]
    thing = _THINGS.get(values[0].casefold(), values[0]) if values else ""
    return template.format(*values, who=who, thing=thing)


def translate_statement(clause: str, who: str) -> str:
    """Return a clause as an English sentence about ``who``; an empty text if no pattern matches."""
    plain = clause.replace("’", "'").strip(" .!,")
    if len(plain) > 300:
        return ""
    for pattern, template in _COMPILED_STATEMENTS:
        match = pattern.fullmatch(plain)
        if match:
            return _fill(template, match.groups(), who) + "."
    return ""


def translate_question(text: str) -> str:
    """Return the English terms of a question; an empty text if no pattern matches."""
    plain = text.replace("’", "'").strip(" .!?¿")
    if len(plain) > 300:
        return ""
    for pattern, template in _COMPILED_QUESTIONS:
        match = pattern.fullmatch(plain)
        if match:
            return _fill(template, match.groups(), "")
    return ""


def is_foreign_first_person(text: str) -> bool:
    """Return whether a text is in another language's first person, or in a non-Latin script."""
    foreign_letters = sum(char.isalpha() and char > "\u036f" for char in text[:500])
    if foreign_letters:
        return foreign_letters >= 4
    if not _FIRST_PERSON.search(text[:2000].replace("’", "'")):
        return False
    return dominant_language(text) not in ("en", "") or not small_word_counts(text)["en"]
