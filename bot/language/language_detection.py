"""Detect the language of a text by its small words. Pure."""

from __future__ import annotations

from typing import Literal, get_args

from bot.language.folding import fold_text, words

Language = Literal["en", "de", "fr", "es"]
"""A language in which the program answers."""

_SMALL_WORDS = {
    language: frozenset(fold_text(small_words).split())
    for language, small_words in {
        "en": """
            i i'm i've the my mine is am are was were have has had do don't does doesn't did and of with to you how
            what where when who your that it for on at not be been they he she his her we our from by me but if so an
            can will user user's please thanks hello no""",
        "de": """
            ich der die das den dem mein meine meinen meiner meinem ist bin und nicht mit ein eine einen zu von auf fur
            habe hat wir er sie es im am nutzer nutzerin kein keine aber sehr heute war was mag liebe wie wo wer wann
            welche welcher heisse du mir mich hallo danke bitte will so an""",
        "fr": """
            je j'ai j'aime j'adore j'habite m'appelle le la les mon ma mes est suis et pas du des un une avec pour dans
            il elle nous vous l'utilisateur l'utilisatrice mais quel quelle ou comment quand n'aime bonjour merci ne
            c'est tu qu'est on me""",
        "es": """
            yo me el la los las mi mis es soy y del en que un una con para usuario usuaria pero muy tengo estoy vivo
            llamo gusta gustan qué cual cuando donde como quien hola gracias no nosotros""",
        "it": "io il gli mio mia e sono una con per l'utente che ma ho non di della alla nel",
        "pt": "eu o os meu minha sou tenho uma com usuario usuaria utilizador mas nao moro do da em",
        "ru": "я мой моя мне меня и в на у не с это пользователь пользователя он она живу",
    }.items()
}
_FRENCH_ELISIONS = ("j'", "qu'", "n'", "c'", "d'")
_LONGEST = 2_000


def small_word_counts(text: str) -> dict[str, int]:
    """Return how many small words of each language a text has."""
    text_words = words(fold_text(text[:_LONGEST]).replace("-", " "))
    counts = {
        language: sum(word in small_words for word in text_words)
        for language, small_words in _SMALL_WORDS.items()
    }
    counts["fr"] += sum(word.startswith(_FRENCH_ELISIONS) for word in text_words)
    return counts


def language_of(text: str) -> Language:
    """Return the language in which to answer a text; English if no other has more small words."""
    counts = small_word_counts(text)
    best = max(get_args(Language), key=lambda language: (counts[language], language == "en"))
    language: Language = best
    return language


def dominant_language(text: str) -> str:
    """Return the language with the most small words; empty if two have equally many."""
    counts = small_word_counts(text)
    best, next_best = sorted(counts, key=counts.__getitem__, reverse=True)[:2]
    return best if counts[best] > counts[next_best] else ""
