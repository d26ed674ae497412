"""A turn means the same on every tape, whether events or messages say where it starts and ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.llm.base import Usage
from bot.memory.records.conversation_entries import TURN_END, TURN_START
from bot.memory.records.tombstones import tombstone
from bot.memory.records.turn_marks import (
    END_META,
    START_META,
    fold_end,
    fold_start,
    turn_end,
    turn_start,
    unfold,
)
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry, event, message

NUMBERS = st.integers(0, 10_000)
WORDS = st.text(max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def turns(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """The data of a turn's start and end: mostly plain ones, and some that a message cannot hold."""
    number = draw(st.integers(1, 10**9))
    turn, inbound = f"turn-{number}", [f"m{number}"]
    start: dict[str, Any] = {"turn": turn, "inbound": inbound, "bounds": [100, 20_000]}
    start |= {"prefix": "ab"}
    start |= draw(st.sampled_from([{}, {}, {"preset": "local"}, {"task": "7"}, {"joined": [1]}]))
    told = draw(st.booleans())
    cached, cost = draw(NUMBERS) if told else 0, draw(st.none() | st.floats(0, 9))
    usage = Usage(draw(NUMBERS), cached, draw(NUMBERS), cost, draw(st.sampled_from([1, 1, 2])))
    end: dict[str, Any] = {"turn": turn, "answered": True, "inbound": inbound, "at": draw(NUMBERS)}
    end |= {"usage": usage.as_json(), "prompt_tokens": usage.prompt_tokens}
    end |= {"status": draw(st.sampled_from(["ok", "ok", "error"])), "ms": draw(st.floats(0, 1e6))}
    end |= {"reply_to": draw(st.sampled_from([inbound[-1], inbound[-1], None]))}
    end |= {"steps": draw(st.sampled_from([1, 1, 3])), "model": draw(st.text(max_size=9))}
    end |= {} if told else {"cache_told": False}
    end |= draw(st.sampled_from([{}, {}, {"cut_off": True}, {"error": "no"}]))
    return start, end


def written(turns: list[tuple[dict[str, Any], dict[str, Any]]], *, folded: bool) -> list[TapeEntry]:
    tape: list[TapeEntry] = []
    for start, end in turns:
        asked = message("user", "hi", inbound=start["inbound"][0], ts="2026-01-02")
        told = message("assistant", "ha", turn=end["turn"], ts="2026-01-03")
        for said, mark in (
            (asked, event(TURN_START, start, ts="2026-01-02")),
            (told, event(TURN_END, end, ts="2026-01-03")),
        ):
            parts = [said, mark]
            if folded and mark.name == TURN_START:
                parts = fold_start([said], mark)
            elif folded:
                parts = fold_end([said], mark, len(tape) + 1)
            tape += [replace(one, id=len(tape) + place) for place, one in enumerate(parts, 1)]
    return tape


def state(tape: list[TapeEntry]) -> tuple[Any, ...]:
    fold = SessionFold(WindowFold(100, 100_000))
    for entry in tape:
        fold.apply(entry)
    turns = fold.turns
    undelivered = [
        (one.turn, one.text, one.reply_to, one.inbound) for one in turns.undelivered.values()
    ]
    return (
        *(turns.usage, turns.turn_count, turns.last_prompt_tokens, undelivered, turns.open_turn),
        *(list(turns.unanswered), [one.payload for one in fold.window.entries]),
        fold.compartments.last_used,
    )


@given(st.lists(turns(), min_size=1, max_size=4, unique_by=lambda one: one[0]["turn"]))
def test_both_shapes_fold_to_the_same(turns):
    assert state(written(turns, folded=True)) == state(written(turns, folded=False))


@given(turns())
def test_what_a_message_holds_reads_back_as_the_event(turn):
    start, end = turn
    tape = written([turn], folded=True)
    [began] = filter(None, map(turn_start, tape))
    [ended] = filter(None, map(turn_end, tape))
    assert {**start, "prefix": "ab"} == {"prefix": "ab", **began.data}
    assert ended.data == end
    assert all(one.meta["ts"] for one in tape if one.kind == "message")


@given(turns())
def test_an_erased_message_keeps_its_turn(turn):
    tape = written([turn], folded=True)
    erased = [tombstone(one) if one.kind == "message" else one for one in tape]
    assert [mark.data for one in erased for mark in unfold(one)[1:]] == [
        mark.data for one in tape for mark in unfold(one)[1:]
    ]


@given(JSON, JSON, JSON, st.sampled_from(["user", "assistant", "automation"]))
def test_nothing_on_a_tape_breaks_it(start, end, inbound, role):
    meta = {START_META: start, END_META: end, "inbound": inbound, "turn": inbound}
    fold = SessionFold(WindowFold(10, 1_000))
    said = replace(message(role, "hi", **meta), id=1)
    assert unfold(said)[0] is said
    fold.apply(said)
    fold.apply(replace(said, id=2))
