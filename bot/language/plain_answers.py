"""Recognise a message that is nothing but yes or no, in several languages. Pure."""

from __future__ import annotations

_YES = frozenset(
    "yes|yes please|please|yes please do|please do|yes do it|do it|do it please|yep|yeah|yes erase it"
    "|erase it|yes forget it|ja|ja bitte|ja mach das|ja mach es|mach das|mach es|bitte|ja lösch es"
    "|ja lösche es|oui|oui s'il te plaît|vas-y|sí|si|sí por favor|hazlo|sim|sim por favor|sì|да|是"
    "|是的|好的|はい|ok|okay|go ahead|yes go ahead|ja gerne|oui merci|d'accord|vale|va bene|да пожалуйста"
    "|так|так будь ласка|نعم|نعم من فضلك".split("|")
)
_NO = frozenset(
    "no|no thanks|no thank you|nope|no don't|don't|do not|keep it|no keep it|nein|nein danke"
    "|lass es|nein lass es|behalte es|non|non merci|no gracias|não|não obrigado|não obrigada|no grazie|нет|нет спасибо"
    "|ні|ні дякую|不|不要|いいえ|لا|لا شكرا".split("|")
)
_LONGEST = 40


def plain_answer(text: str) -> bool | None:
    """Return True for a text that only says yes, False for one that only says no, else None."""
    if len(text) > _LONGEST:
        return None
    plain = text.casefold().replace("’", "'")
    words = "".join(" " if sign in ".,!。！、，،" else sign for sign in plain).split()
    said = " ".join(words)
    return True if said in _YES else False if said in _NO else None
