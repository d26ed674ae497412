"""The book of logins is bounded, and what is foreign or damaged on its tape changes nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.bus import Address
from bot.core.errors import InvalidInbound
from bot.inspector.access.identities import channel_address, visitor_id
from bot.inspector.access.login_fold import (
    ALL_LOGINS,
    ALL_TOKENS,
    LOGIN_ENDED,
    LOGIN_LIFETIME,
    LOGIN_OFFERED,
    LOGIN_OPENED,
    LOGIN_USED,
    MAX_ONE_TIME_LOGINS,
    MAX_ONE_TIME_LOGINS_PER_VISITOR,
    MOST_LOGINS,
    TOKEN_MADE,
    LoginFold,
    login_entry,
)
from bot.tape.entries import TapeEntry, event, message
from bot.testing.manual_clock import START_TIME


class Writer:
    """Writes entries into a book, with the ids that a tape gives."""

    def __init__(self) -> None:
        self.book = LoginFold()
        self.now = START_TIME

    def write(self, name: str, /, **data: Any) -> None:
        entry = login_entry(name, self.now, **data)
        self.book.apply(replace(entry, id=self.book.version + 1))


def test_of_too_many_logins_of_one_visitor_the_least_lately_used_go():
    writer = Writer()
    for number in range(MOST_LOGINS):
        writer.write(LOGIN_OPENED, digest=f"d{number}", **{"as": "a", "name": "A"})
    writer.write(LOGIN_USED, digest="d0")
    writer.write(LOGIN_OPENED, digest="new", **{"as": "a", "name": "A"})
    kept = {one.digest for one in writer.book.logins_of("a", START_TIME)}
    assert len(kept) == MOST_LOGINS
    assert {"d0", "new"} <= kept
    assert "d1" not in kept
    assert writer.book.logins_of("a", START_TIME)[0].digest == "new"


def test_however_much_is_written_what_is_kept_is_bounded():
    writer = Writer()
    for number in range(ALL_LOGINS + 500):
        who = f"v{number // 3}"
        writer.write(LOGIN_OFFERED, digest=f"o{number}", **{"as": who, "name": "A", "chat": ""})
        writer.write(LOGIN_OPENED, digest=f"d{number}", **{"as": who, "name": "A"})
        writer.write(TOKEN_MADE, digest=f"t{number}", **{"as": who, "name": f"t{number}"})
    book = writer.book
    assert len(book.logins) == ALL_LOGINS
    assert len(book.one_time_logins) == MAX_ONE_TIME_LOGINS
    assert len(book.tokens) == ALL_TOKENS
    assert book.login(f"d{ALL_LOGINS + 499}", START_TIME) is not None
    assert book.login("d0", START_TIME) is None
    for number in range(ALL_LOGINS + 500):
        writer.write(LOGIN_ENDED, digest=f"d{number}")
    assert not book.logins
    assert not book._of


def test_a_visitor_has_a_few_offers_at_once_and_the_newest_count():
    writer = Writer()
    for number in range(MAX_ONE_TIME_LOGINS_PER_VISITOR + 3):
        writer.write(LOGIN_OFFERED, digest=f"o{number}", **{"as": "a", "name": "A", "chat": ""})
    assert list(writer.book.one_time_logins) == [
        f"o{number}" for number in range(3, MAX_ONE_TIME_LOGINS_PER_VISITOR + 3)
    ]


def test_what_opens_by_an_offer_that_is_gone_opens_nothing():
    writer = Writer()
    writer.write(LOGIN_OFFERED, digest="o", **{"as": "a", "name": "A", "chat": ""})
    writer.write(LOGIN_OPENED, digest="one", **{"as": "a", "name": "A", "offer": "o"})
    writer.write(LOGIN_OPENED, digest="two", **{"as": "a", "name": "A", "offer": "o"})
    assert list(writer.book.logins) == ["one"]


def test_logins_that_ended_by_themselves_leave_with_the_next():
    writer = Writer()
    for number in range(10):
        writer.write(LOGIN_OPENED, digest=f"d{number}", **{"as": "a", "name": "A"})
    writer.now = START_TIME + LOGIN_LIFETIME + timedelta(days=1)
    writer.write(LOGIN_OPENED, digest="new", **{"as": "a", "name": "A"})
    assert list(writer.book.logins) == ["new"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
_NAMES = st.sampled_from(
    [LOGIN_OFFERED, LOGIN_OPENED, LOGIN_USED, LOGIN_ENDED, TOKEN_MADE, "token.ended", "other"]
)
_KEYS = st.sampled_from(["digest", "as", "name", "at", "offer", "chat"])
_TEXTS = st.sampled_from(["a", "b", "c"])
_DATA = st.dictionaries(_KEYS, _JSON | _TEXTS) | st.fixed_dictionaries(
    {"digest": _TEXTS, "as": _TEXTS, "name": _TEXTS, "at": st.just("2026-02-10T10:00:00+00:00")},
    optional={"offer": _TEXTS},
)


@given(st.lists(st.tuples(_NAMES, _DATA), max_size=30))
def test_no_entry_however_damaged_breaks_the_book(entries):
    book = LoginFold()
    for number, (name, data) in enumerate(entries, 1):
        book.apply(replace(event(name, data), id=number))
    book.apply(TapeEntry(len(entries) + 1, "message", message("user", "hello").payload))
    assert book.version == len(entries) + 1
    assert sum(map(len, book._of.values())) == len(book.logins)


@pytest.mark.slow
@given(
    st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True),
    st.text(st.characters(exclude_characters=":", exclude_categories=["Z", "C"]), max_size=12),
)
def test_two_identities_are_never_one_visitor(channel, sender):
    visitor = visitor_id(channel, sender)
    try:
        whole = Address(channel, sender)
    except InvalidInbound:
        assert visitor is None or channel == "web"
        return
    if channel == "web":
        assert visitor in (None, sender)
    elif channel != "console":
        assert visitor is not None
        # Being told back is being told apart.
        assert channel_address(visitor) == whole


def test_only_the_person_of_the_console_is_the_one_of_this_machine():
    assert visitor_id("console", "local") == visitor_id("web", "local") == "local"
    assert channel_address("local") == Address("console", "local")
    assert visitor_id("telegram", "local") == "telegram.local"
    assert visitor_id("console", "42") is None
    assert channel_address("console.local") is None
    assert channel_address("web.telegram.42") is None
    assert channel_address("telegram") is None
    assert visitor_id("web", "nobody") is None
    assert visitor_id("telegram-work", "4.2") == "telegram-work.4.2"
    assert channel_address("telegram-work.4.2") == Address("telegram-work", "4.2")
