"""Requests of long conversations: encoded in parts, and the same JSON as if encoded whole."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.llm.http.request_encoding import RequestEncoder

Message = dict[str, Any]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def conversation(said: list[str]) -> list[Message]:
    """Return a conversation that is long enough for its encoding to be kept."""
    padded = [*said, *(f"message {number}" for number in range(120))]
    return [{"role": "user", "content": text} for text in padded]


def body_of(system: str, messages: list[Message], tail: str, **more: Any) -> dict[str, Any]:
    last = {**messages[-1], "content": messages[-1]["content"] + tail}
    return {**more, "messages": [{"role": "system", "content": system}, *messages[:-1], last]}


@given(
    said=st.lists(texts, max_size=4),
    steps=st.lists(st.tuples(st.integers(-110, 3), texts, texts, st.booleans()), max_size=6),
)
def test_whatever_becomes_of_a_conversation_its_json_is_the_one_of_its_request(said, steps):
    encoder, messages = RequestEncoder(), conversation(said)
    for change, system, tail, edits in steps:
        if change < 0:
            messages = messages[-change:]
        messages = [*messages, *conversation([tail])[: max(1, change)]]
        if edits:
            # A message is rendered anew, such as a look-up whose turn was answered.
            messages[len(messages) // 2] = {"role": "user", "content": tail}
        body = body_of(system, messages, tail, model="m", stream=True)
        assert json.loads(encoder.encode(body)) == body
