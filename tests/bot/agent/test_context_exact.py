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
from bot.tape.entries import TapeEntry, anchor, message, tool_call, tool_result
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


def a_call(*ids: str) -> TapeEntry:
    return tool_call("let me see", [{"id": one, "name": "t", "arguments": "{}"} for one in ids])


def test_the_exact_context_is_the_tape_entry_by_entry():
    function = {"name": "t", "arguments": "{}"}
    assert exact(
        message("user", "before the boundary"),
        anchor("phase/two", {"summary": "Grüße", "next_steps": ["a"]}),
        message("user", "[hi]", sent="2026-02-10T10:00:00+00:00", sender={"id": 7, "name": "Ada"}),
        a_call("c1", "c2"),
        anchor("memory/open", {"version": 2}),
        anchor("memory/seal", {"version": 2}),
        tool_result("c1", "t", "one"),
        tool_result("c2", "t", "two"),
        message("assistant", "hello"),
        message("user", "more"),
    ) == [
        {
            "role": "assistant",
            "content": '[Anchor created: phase/two]: {"summary": "Grüße", "next_steps": ["a"]}',
        },
        {"role": "user", "content": "[hi]"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": function},
                {"id": "c2", "type": "function", "function": function},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "assistant", "content": '[Anchor created: memory/open]: {"version": 2}'},
        {"role": "assistant", "content": '[Anchor created: memory/seal]: {"version": 2}'},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "more"},
    ]


def test_results_without_an_id_answer_the_calls_in_their_order():
    nameless = [TapeEntry(0, "tool_result", {"content": text}) for text in ("one", "two")]
    shown = exact(message("user", "hi"), a_call("c1", "c2"), *nameless)
    assert [(m["tool_call_id"], m["content"]) for m in shown if m["role"] == "tool"] == [
        ("c1", "one"),
        ("c2", "two"),
    ]


def test_results_with_an_id_answer_the_call_that_they_name():
    named = [tool_result("c2", "t", "two"), tool_result("c1", "t", "one")]
    shown = exact(message("user", "hi"), a_call("c1", "c2"), *named)
    assert [(m["tool_call_id"], m["content"]) for m in shown if m["role"] == "tool"] == [
        ("c1", "one"),
        ("c2", "two"),
    ]


async def test_the_exact_context_tells_of_the_last_boundary_once(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model, builder=context_builder("exact")) as host:
        await host.channel.ask("hello")
        await host.channel.ask("/new now")
        await host.channel.ask("now")
    system, first, *_ = model.requests_for()[-1].messages
    assert "<handoff name" not in system["content"]
    assert first["content"].startswith("[Anchor created: session/new]: {")


def test_an_anchor_never_stands_last_nor_between_a_call_and_its_result():
    entries = [message("user", "hi"), a_call("c"), anchor("memory/consolidated", {"through": 0})]
    for tape in (entries, [*entries, tool_result("c", "t", "one")]):
        assert exact(*tape)[-1]["role"] == "tool"


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
