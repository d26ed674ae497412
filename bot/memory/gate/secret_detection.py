"""Detect secrets, such as passwords and keys, that memory should not learn. Pure.

Rule 1: the result names the kind of secret, so that a message can mention it.
Rule 2: dates and telephone, order and room numbers are not secrets.
"""

from __future__ import annotations

import re
from typing import Literal

from bot.core.errors import MemoryRefused
from bot.core.folding import normalize_typography
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.core.telemetry.redaction import redact

_LONGEST = 20_000
_PRIVATE = LazyPattern(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|-----BEGIN PGP PRIVATE|\bAGE-SECRET-KEY-1|\bPuTTY-User-Key-File"
)
_PHRASE = LazyPattern(
    r"\b(?:seed|recovery|mnemonic|wallet) (?:phrase|words|seed)\b\W{1,4}(?:is |are )?\W{0,2}(?:[a-z]{3,8}\s){11}",
    re.IGNORECASE,
)
_CARD = LazyPattern(r"(?<![\d.+-])\d(?:[ -]?\d){12,18}(?![\d-])")
_IBAN = LazyPattern(
    r"(?<![A-Z0-9])[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Z0-9])"
)
_CODE = LazyPattern(
    r"(?i)\b(?:one[- ]time (?:code|password|pin)|otp|2fa(?: code)?|verification code|security code|login code|confirmation code|tan|cvv|cvc|passcode|auth(?:entication)? code"
    r"|einmal(?:code|passwort)|bestätigungscode|sicherheitscode|code de vérification|código de verificación|codice di verifica|código de verificação|код подтверждения|验证码|認証コード)[^\d\n]{0,20}\d{3,8}(?!\d)"
)
_PIN = LazyPattern(
    r"(?i)\b(?:pin|pin[- ]?code|pin[- ]?nummer|geheimzahl|пин-?код)\b[^\d\n]{0,14}\b\d{4,8}(?!\d)|密码是?[:： ]?\S{4,}|暗証番号は?[:： ]?\d{4,}"
)
_WORD = r"(?:pass(?:word|wort|phrase|code)|passwd|pwd|kennwort|mot de passe|contraseña|clave secreta|senha|пароль|パスワード)"
_PASSWORD = LazyPattern(
    rf"(?i)(?<!\w){_WORD}(?![a-zа-я])(?: (?:for|to|of|für|zum|para|pour|de|per|от|do|da|on|at|in) [^:=\n]{{1,40}}?)?(?:\s{{0,3}}[:=]\s{{0,3}}| (?:is|ist|lautet|est|es|è|é|=|remains|was)(?: now| jetzt)? |は|为|—|\s-\s)[\"'`“]?(?P<what>[^\s\"'`”]{{3,80}})"
)
_ORDINARY = frozenset(
    "too not very weak strong wrong lost safe gone expired changed reset forgotten required stored saved written the a an in on my kept long short secret hard easy new old same stupid always never nicht zu weg kein pas trop no muy stale due incorrect invalid unknown something what".split()
)
_KEY = LazyPattern(
    r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}\b|(?<![A-Za-z0-9])(?:glpat-|npm_|dop_v1_|shpat_|sq0[a-z]{3}-|pypi-|rk_live_|sk_live_|pk_live_|whsec_|EAA[A-Z])[\w-]{10,}"
    r"|(?i:\b(?:api|access|secret|auth|bearer)[ _-]?(?:key|token|secret)\b\W{0,4}(?:is |ist |est |es |: ?|= ?)\W{0,2})[\w.~+/-]{8,}"
)
_TOKEN = LazyPattern(
    r"(?<![\w/.@-])(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[a-z])(?=[\w-]{0,80}[A-Z])[A-Za-z0-9_-]{32,200}(?![\w/.@-])"
)


def check_no_secret(
    text: str, code: Literal["secret", "secret_unasked", "secret_elsewhere"] = "secret"
) -> None:
    """Refuse a text that looks like a secret, with a code that says which rule it breaks.

    Raises:
        MemoryRefused: It looks like a secret.
    """
    if (what := detect_secret(text)) is not None:
        raise MemoryRefused(Reason(code, kind=what))


def detect_secret(text: str) -> Reason | None:
    """Return the kind of secret that a text looks like, with its article, or None.

    Kinds: "a private key", "a recovery phrase", "an API key", "a password", "a one-time code",
    "a PIN", "a card number", "an IBAN".
    """
    text = normalize_typography(text[:_LONGEST])
    if _PRIVATE.search(text):
        return Reason("private_key")
    if _PHRASE.search(text):
        return Reason("recovery_phrase")
    password = any(_is_password(hit["what"]) for hit in _PASSWORD.finditer(text))
    if password:
        return Reason("password")
    if _KEY.search(text) or _TOKEN.search(text) or redact(text) != text:
        return Reason("api_key")
    if _CODE.search(text):
        return Reason("one_time_code")
    if _PIN.search(text):
        return Reason("pin")
    if any(_luhn(re.sub(r"\D", "", run)) for run in _CARD.findall(text)):
        return Reason("card_number")
    return Reason("iban") if any(_iban(run) for run in _IBAN.findall(text)) else None


def _is_password(what: str) -> bool:
    bare = what.strip(".,;:!?()").casefold()
    return len(bare) >= 3 and bare not in _ORDINARY


def _luhn(digits: str) -> bool:
    """Say whether digits look like a card number: length, first digit, and check digit."""
    if not 13 <= len(digits) <= 19 or digits[0] not in "23456" or len(set(digits)) < 2:
        return False
    total = 0
    for at, sign in enumerate(reversed(digits)):
        value = int(sign) * (1 + at % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _iban(text: str) -> bool:
    bare = text.replace(" ", "")
    if not 15 <= len(bare) <= 34 or not bare.isascii():
        return False
    return int("".join(str(int(sign, 36)) for sign in bare[4:] + bare[:4])) % 97 == 1
