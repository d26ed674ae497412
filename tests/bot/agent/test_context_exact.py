"""The exact context is the tape entry by entry, and no tape can make it fail."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.agent.views.exact import anchors_in_view, exact_context
from bot.agent.views.registry import context_builder
from bot.llm.base import ChatMessage
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply


def exact(*entries: TapeEntry) -> list[ChatMessage]:
    """The exact context of a tape."""
    fold = SessionFold(WindowFold(100, 10_000))
    numbered = [
        TapeEntry(number, one.kind, one.payload, one.meta)
        for number, one in enumerate(entries, start=1)
    ]
    for one in numbered:
        fold.apply(one)
    return exact_context(fold.window, {}, anchors_in_view(fold, numbered))


async def test_the_exact_context_tells_of_the_last_boundary_once(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model, builder=context_builder("exact")) as host:
        await host.channel.ask("hello")
        await host.channel.ask("/new now")
        await host.channel.ask("now")
    system, first, *_ = model.requests_for()[-1].messages
    assert "<handoff name" not in system["content"]
    assert first["content"].startswith("[Anchor created: session/new]: {")


JSON = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
CALLS = st.lists(
    st.fixed_dictionaries({}, optional={"id": st.sampled_from("ab"), "name": JSON}), max_size=3
)
PAYLOADS = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant"]) | JSON,
        "content": JSON,
        "calls": CALLS | JSON,
        "call_id": st.sampled_from("ab") | JSON,
        "name": st.sampled_from(["session/new", "memory/seal", "turn.start"]) | JSON,
        "state": JSON | st.fixed_dictionaries({"keep_from": st.integers(1, 9)}),
        "entry": st.integers(0, 3),
    },
)
METAS = st.fixed_dictionaries({}, optional={"queued": st.booleans(), "replaces": JSON})
KINDS = st.sampled_from(["message", "tool_call", "tool_result", "anchor", "event"])


@given(st.lists(st.builds(TapeEntry, st.just(0), KINDS, PAYLOADS, METAS), max_size=20))
@settings(max_examples=examples(200))
def test_no_tape_can_make_the_exact_context_fail_or_leave_a_call_without_its_result(entries):
    waiting: list[str] = []
    for shown in exact(*entries):
        if shown["role"] == "tool":
            assert waiting.pop(0) == shown["tool_call_id"]
        else:
            assert waiting == []
            waiting = [call["id"] for call in shown.get("tool_calls", [])]
    assert waiting == []
