"""The book of logins is bounded, and what is foreign or damaged on its tape changes nothing."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.bus import Address
from bot.core.errors import InvalidInbound
from bot.inspector.access.identities import channel_address, visitor_id
from bot.inspector.access.login_fold import (
    ALL_LOGINS,
    ALL_TOKENS,
    LOGIN_ENDED,
    LOGIN_OFFERED,
    LOGIN_OPENED,
    LOGIN_USED,
    MAX_ONE_TIME_LOGINS,
    TOKEN_MADE,
    LoginFold,
    login_entry,
)
from bot.tape.entries import TapeEntry, event, message
from bot.testing.manual_clock import START_TIME


def test_however_much_is_written_what_is_kept_is_bounded():
    book, number = LoginFold(), ALL_LOGINS + 500

    def write(name, /, **data):
        book.apply(login_entry(name, START_TIME, **data))

    for one in range(number):
        who = {"as": f"v{one // 3}", "name": f"t{one}"}
        write(LOGIN_OFFERED, digest=f"o{one}", chat="", **who)
        write(LOGIN_OPENED, digest=f"d{one}", **who)
        write(TOKEN_MADE, digest=f"t{one}", **who)
    assert len(book.logins) == ALL_LOGINS
    assert len(book.one_time_logins) == MAX_ONE_TIME_LOGINS
    assert len(book.tokens) == ALL_TOKENS
    assert book.login(f"d{number - 1}", START_TIME) is not None
    assert book.login("d0", START_TIME) is None


_NAMES = st.sampled_from(
    [LOGIN_OFFERED, LOGIN_OPENED, LOGIN_USED, LOGIN_ENDED, TOKEN_MADE, "token.ended", "other"]
)
_KEYS = st.sampled_from(["digest", "as", "name", "at", "offer", "chat"])
_TEXTS = st.sampled_from(["a", "b", "c"])
_ODD = st.sampled_from([None, True, 7, "", [], ["a"], {}, {"a": None}, "é"])
_DATA = st.dictionaries(_KEYS, _ODD | _TEXTS, max_size=4) | st.fixed_dictionaries(
    {"digest": _TEXTS, "as": _TEXTS, "name": _TEXTS, "at": st.just("2026-02-10T10:00:00+00:00")},
    optional={"offer": _TEXTS},
)


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(_NAMES, _DATA), max_size=12))
def test_no_entry_however_damaged_breaks_the_book(entries):
    book = LoginFold()
    for number, (name, data) in enumerate(entries, 1):
        book.apply(replace(event(name, data), id=number))
    before = deepcopy(book)
    book.apply(TapeEntry(len(entries) + 1, "message", message("user", "hello").payload))
    assert book == before


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
