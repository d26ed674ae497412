"""Messages come back from the inbox journal as they were, also from the lines of earlier versions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from bot.bus import Address, Inbound, Sender
from bot.bus.journal import AcceptedMessage, JournalState, encode_accepted, encode_in
from bot.bus.messages import Attachment

# Lone surrogates and unpaired halves too: such text reaches us from platforms.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=12)
TIMES = st.datetimes(
    datetime(1971, 1, 1),  # noqa: DTZ001
    datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))]),
).map(lambda at: at.replace(microsecond=at.microsecond // 1_000 * 1_000))
IDS = st.text("abc019-_.", min_size=1, max_size=8)
MESSAGES = st.builds(
    AcceptedMessage,
    st.integers(1, 10**9),
    TIMES,
    st.builds(
        Inbound,
        st.builds(Address, st.sampled_from(["telegram", "web"]), IDS, st.none() | IDS),
        TEXTS,
        st.builds(Sender, TEXTS, TEXTS, st.sampled_from(["", "de"])),
        TEXTS,
        TIMES,
        private=st.booleans(),
        quote=st.none() | TEXTS,
        role=st.sampled_from(["owner", "member"]),
        expects_answer=st.booleans(),
        edited_message_id=st.none() | TEXTS,
        answer_to=st.none() | st.just(Address("web", "desk")),
        attachments=st.sampled_from([(), (Attachment("image", "é.png", "image/png"),)]),
        moved_to=st.none() | IDS,
    ),
)


def read(lines: bytes) -> JournalState:
    state = JournalState()
    state.read(lines)
    assert not state.damaged
    return state


@given(MESSAGES)
def test_a_message_comes_back_as_it_was(record):
    [back] = read(encode_accepted(record)).pending.values()
    assert back == record
    assert back.inbound.sender.language == record.inbound.sender.language


@given(MESSAGES, MESSAGES)
def test_a_line_ends_those_before_it_and_a_databases_row_says_the_same(first, second):
    if first.seq != second.seq:
        lines = encode_accepted(first) + encode_accepted(second, [first.seq])
        assert list(read(lines).pending) == [second.seq]
    assert read(encode_in(second)).pending[second.seq].inbound.text == second.inbound.text


def test_a_line_of_an_earlier_version_is_read():
    line = (
        b'{"op":"in","seq":21,"at":"2026-11-26T16:06:52.119+00:00","channel":"bench","chat":"a","topic":"t",'
        b'"id":"x-21","sender":{"id":"1","name":"Ada"},"text":"ho","sent":"2026-11-26T16:06:51.000001+00:00",'
        b'"private":false,"quote":"q","role":"owner"}\n'
    )
    [record] = read(line).pending.values()
    assert record.accepted_at == datetime(2026, 11, 26, 16, 6, 52, 119_000, UTC)
    assert record.inbound == Inbound(
        Address("bench", "a", "t"), "x-21", Sender("1", "Ada"), "ho",
        datetime(2026, 11, 26, 16, 6, 51, 1, UTC), private=False, quote="q", role="owner",
    )  # fmt: skip
