"""Messages come back from the inbox journal as they were, also from the lines of earlier versions."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.bus import Address, Inbound, Sender
from bot.bus.journal import JournalState


def read(lines: bytes) -> JournalState:
    state = JournalState()
    state.read(lines)
    assert not state.damaged
    return state


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
