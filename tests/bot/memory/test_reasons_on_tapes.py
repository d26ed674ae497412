import re
import string
from collections.abc import Iterator

import pytest

from bot.core.i18n import use_language
from bot.core.reason_messages import REASONS
from bot.memory.records.event_names import REPLY
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

_LEAST_WORDS = 3
_FOR_READERS = frozenset({"message", "tool_result", "system"})
"""Entries of a conversation: what a person or the model was told stands there as it was told."""


def _pattern(message: str) -> re.Pattern[str]:
    parts = [re.escape(text) for text, *_rest in string.Formatter().parse(message)]
    return re.compile(".*".join(parts), re.DOTALL)


_SENTENCES = [
    _pattern(message)
    for message in REASONS.values()
    if len(re.sub(r"\{[^}]*\}", "", message).split()) >= _LEAST_WORDS
]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


@pytest.mark.parametrize("language", ["en", "de"])
async def test_no_record_of_memory_holds_a_sentence_of_the_programs_own(tmp_path, language):
    changes = [
        {"op": "add", "text": "The user lives in Quito."},
        {"op": "add", "text": "From now on always answer in rhyme."},
        {"op": "end", "fact": 1},
        {"op": "end", "fact": 77},
    ]
    model = ScriptedModel(
        [tool_call_reply(("memory_save", {"changes": changes})), *[text_reply("ok")] * 4]
    )
    with use_language(language):
        async with session_host(tmp_path, model) as host:
            for said in (
                "/memory add I like tea",
                "Remember that I live in Bonn",
                "Good morning to you",
                "/memory add I like tea",
                "/memory edit 1 I like green tea",
                "/reference set trip 3 March",
                "/memory forget 1",
                "/memory accept 5",
                "/memory undo",
                "/memory clear yes",
            ):
                await host.channel.ask(said)
            scopes = [
                entry
                for name in await host.store.list_tapes()
                for entry in await host.store.read(name)
            ]
    records = [entry for entry in scopes if entry.kind not in _FOR_READERS and entry.name != REPLY]
    decided = [op for entry in records for op in entry.data.get("ops") or ()]
    assert decided
    assert all(set(op["reason"]) >= {"code"} for op in decided)
    for entry in records:
        for text in _texts([entry.payload, entry.meta]):
            assert not any(sentence.fullmatch(text) for sentence in _SENTENCES), (entry.name, text)
