"""Parse a claim into its subject, names, terms and clauses. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from bot.core.patterns import LazyPattern
from bot.language.claim_terms import content_terms, term
from bot.language.clause import Clause
from bot.language.clauses import parse_clauses
from bot.language.folding import UNSPACED, fold_text, normalize_typography, words
from bot.language.lexicon import KIN, KIN_UNSPACED, MONTHS
from bot.language.names import extract_names

USER_REFERENCE = LazyPattern(
    r"\b(?:the user|der nutzer|die nutzerin|der benutzer|die benutzerin|des (?:be)?nutzers|der (?:be)?nutzerin|dem (?:be)?nutzer|den (?:be)?nutzer|l'utilisateur|l'utilisatrice|el usuario|la usuaria|del usuario|al usuario|l'utente|dell'utente"
    r"|o usuario|a usuaria|do usuario|o utilizador|do utilizador|пользовател\w{1,3}|пользовательниц\w|uzytkownik\w{0,2}|de gebruiker|user)\b|用户|用戶|使用者|ユーザー?|利用者|사용자|المستخدم|המשתמש"
)
_DATED = LazyPattern(
    r"(?:(?<!\s)\s++)?[\[(](?:[^\W\d]{1,12}(?: [^\W\d]{1,12}){0,2} )?(\d{4}-\d\d-\d\d)[\])]|(?<!\s)\s++(?:as of|said on|noted on) (\d{4}-\d\d-\d\d)"
)
_DATED_BY_MONTH = LazyPattern(
    r"(?:(?<!\s)\s++)?[\[(](?:as of|said in|noted in) ([^\W\d]{3,12}),? (\d{4})[\])]"
)


@dataclass(frozen=True, slots=True)
class ParsedClaim:
    """A claim and its parts.

    Attributes:
        text: The claim without the day or month of the message, with "The user" for the speaker's names.
        folded: The folded text.
        names: Names in the claim.
        terms: Terms of its content words.
        kin: Terms of the relatives it mentions.
        subject: Terms of whom it is about; empty for the user.
        clauses: Clauses of the claim, in the first person.
    """

    text: str
    folded: str
    names: tuple[str, ...]
    terms: tuple[str, ...]
    kin: frozenset[str]
    subject: frozenset[str]
    clauses: tuple[Clause, ...]

    @property
    def negated(self) -> bool:
        """Whether the claim denies something, or says that something has ended."""
        return any(clause.negated or clause.ended for clause in self.clauses)


@lru_cache(maxsize=256)
def parse_claim(claim: str, when: date | None, names: frozenset[str]) -> ParsedClaim:
    """Parse a claim.

    Args:
        claim: The claim as written.
        when: Day of the message that it was learned from.
        names: Names of the speaker.
    """

    def undated(hit: re.Match[str]) -> str:
        return "" if when and when.isoformat() in hit.groups() else hit.group()

    def without_month(hit: re.Match[str]) -> str:
        told = (int(hit[2]), MONTHS.get(fold_text(hit[1])))
        return "" if when and told == (when.year, when.month) else hit.group()

    text = _DATED_BY_MONTH.sub(without_month, _DATED.sub(undated, normalize_typography(claim)))
    text = text.strip()
    for name in sorted(
        (normalize_typography(n).strip() for n in names if n.strip()), key=len, reverse=True
    ):
        bare = re.sub(r"(?:(?<!\s)\s++)?\([^()]*\)$", "", name)
        for form in dict.fromkeys((name, bare)):
            if form:
                text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", "The user", text)
    low = fold_text(text)
    without = (
        USER_REFERENCE.sub(" ", low) if not UNSPACED.search(low) else USER_REFERENCE.sub("", low)
    )
    kin = frozenset(
        [KIN[w.removesuffix("'s")] for w in words(low) if w.removesuffix("'s") in KIN]
        + [KIN[form] for form in KIN_UNSPACED if form in low]
    )
    first_person = re.sub(r"(?i)\b(?:the user|user)\b", "I", text)
    return ParsedClaim(
        text,
        low,
        tuple(
            extract_names(
                USER_REFERENCE.sub(" , ", text) if low == text.lower() else _without_user(text)
            )
        ),
        tuple(dict.fromkeys(content_terms(without))),
        kin,
        _subject(text, low),
        parse_clauses(first_person),
    )


def _without_user(text: str) -> str:
    other_words = [
        word for word in text.split()
        if not re.fullmatch(r"(?:l'|dell')?(?:users?|(?:be)?nutzer(?:in|s)?|utilisat(?:eur|rice)|usuari[oa]|utente|utilizador|uzytkownik)(?:'s)?", fold_text(word).strip(".,;:()"))
    ]  # fmt: skip
    return " ".join(other_words)


_OFUSER = LazyPattern(
    r"(?:the )?(?:user|i)'s |my |mein\w{0,2} |mon |ma |mi |mio |mia |il mio |la mia |meu |minha |o meu |a minha |мо\w{1,2} |(?:用户|我|ユーザー|私)(?:的|の)"
)
_BYUSER = LazyPattern(
    r"(?:the user(?!')|user(?!')|i\b|der (?:be)?nutzer|die (?:be)?nutzerin|l'utilisat|el usuario|la usuaria|l'utente|o usuario|a usuaria|o utilizador|пользовател|用户(?!的)|ユーザーは)"
)


WITH_USER = LazyPattern(
    r"(?:[^\W\d_][\w'’.-]* ){1,4}(?:and|und|et|y|e|и) (?:i\b(?!')|ich\b|the user\b(?!')|der (?:be)?nutzer\b|die (?:be)?nutzerin\b|l'utilisat|el usuario|la usuaria|l'utente|o usuario|a usuaria|пользователь\b)"
)
"""Matches "somebody and the user", which counts as a claim about the user."""


def _subject(text: str, low: str) -> frozenset[str]:
    """Return the terms of whom a claim is about; empty for the user."""
    if _BYUSER.match(low) or WITH_USER.match(low):
        return frozenset()
    head = low[:60]
    of_user = _OFUSER.match(low)
    if UNSPACED.search(low):
        start = low[of_user.end() :] if of_user else low
        return frozenset(KIN[form] for form in KIN_UNSPACED if start.startswith(form))
    first = words(low[of_user.end() :] if of_user else low)[:3]
    for at, word in enumerate(first):
        relative = KIN.get(word.removesuffix("'s"))
        if (
            relative
            and (of_user or at <= 1)
            and (at == 0 or of_user or USER_REFERENCE.search(head))
        ):
            return frozenset({relative})
    if of_user or not first or (USER_REFERENCE.search(head) and not extract_names(text)[:1]):
        return frozenset()
    named = extract_names(text[:200])
    if named and fold_text(named[0]).removesuffix("'s") == first[0].removesuffix("'s"):
        return frozenset({term(first[0])})
    return frozenset()
