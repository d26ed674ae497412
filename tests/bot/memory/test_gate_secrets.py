"""What looks like a secret is named, and ordinary numbers are not taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.gate.secret_detection import detect_secret

SECRET = [
    ("My password is hunter2", "a password"),
    ("The wifi password: Otter-77!", "a password"),
    ("password for the router = abc12345", "a password"),
    ("Mein Passwort lautet Sommer2026", "a password"),
    ("Mon mot de passe est soleil9", "a password"),
    ("Mi contraseña es girasol8", "a password"),
    ("Мой пароль: ромашка1", "a password"),
    ("パスワードはneko123です", "a password"),
    ("my key is sk-abcdefghijklmnop1234", "an API key"),
    ("ghp_abcdefghijklmnopqrstuvwx0123456789", "an API key"),
    ("AKIAIOSFODNN7EXAMPLE", "an API key"),
    ("my api key is 9a8b7c6d5e4f", "an API key"),
    ("bot 123456789:AAaaBBbbCCccDDddEEeeFFffGGgghhHHiiI", "an API key"),
    ("xK9mPq2vLw8nRt4yUz6bHc3jFd7gSe1a", "an API key"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----", "a private key"),
    ("My card is 4111 1111 1111 1111", "a card number"),
    ("5555555555554444 is my card", "a card number"),
    ("Your verification code is 482913", "a one-time code"),
    ("CVV 123", "a one-time code"),
    ("My PIN is 4711", "a PIN"),
    ("IBAN DE89 3704 0044 0532 0130 00", "an IBAN"),
    ("GB82WEST12345698765432", "an IBAN"),
]

ORDINARY = [
    "My birthday is 1987-03-14.",
    "Call me at +49 170 1234567.",
    "Order 2026-0012345678 has shipped.",
    "The user's order number is 1234567890123.",
    "My locker is number 4711.",
    "I forgot my password.",
    "The password is too weak.",
    "My password manager is Bitwarden.",
    "I pinned 3000 photos.",
    "The zip code is 10115.",
    "Room 1203, building 7.",
    "1,500 euros a month",
    "123e4567-e89b-12d3-a456-426614174000",
    "The flight is LH2034 at 12:45.",
    "ISBN 978-3-16-148410-0",
    "My token of love is a ring.",
    "https://example.org/a/very/long/path/Without1Secret",
    "我住在上海。",
    "The key is under the mat.",
    "I live at Weg 12, 10115 Berlin.",
]


@pytest.mark.parametrize(("text", "kind"), SECRET)
def test_a_secret_is_named(text, kind):
    assert detect_secret(text) == kind


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_numbers_and_words_are_no_secrets(text):
    assert detect_secret(text) is None


@given(st.text(max_size=400))
def test_any_text_is_answered(text):
    assert detect_secret(text) is None or detect_secret(text).startswith("a")


@pytest.mark.parametrize(
    "piece", ["1", "1 ", "password is ", "A1b", "DE89 ", "pin ", "seed phrase is ", "a-"]
)
def test_long_texts_are_answered_in_bounded_time(piece):
    detect_secret((piece * 20_000)[:20_000])
