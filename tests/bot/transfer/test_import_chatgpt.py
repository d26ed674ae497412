"""What ChatGPT showed is on our tapes, what it hid is not, and nothing is believed by itself."""

from __future__ import annotations

import itertools
import json

import anyio
import pytest
from assistant_exports import bring, chatgpt, messages, node, root, said, talk
from exchange_files import tapes
from hypothesis import given
from hypothesis import strategies as st

from bot.transfer.memory_files import read_session_memory
from bot.transfer.readers.chatgpt import linear_nodes


def one_file(path, *conversations):
    path.mkdir(exist_ok=True)
    (path / "conversations.json").write_text(json.dumps(conversations))
    return path


def test_the_branch_that_was_left_is_left_out(tmp_path, capsys):
    nodes = [
        root(children=["a"]),
        node("a", "root", "user", "What is the capital?", children=["b", "c"]),
        node("b", "a", "assistant", "The first answer."),
        node("c", "a", "assistant", "The answer written again."),
        node("d", "c", "user", "Thanks."),
    ]
    bring(tmp_path, "chatgpt", one_file(tmp_path / "in", chatgpt("k1", nodes, "d")))
    assert said(tmp_path, "chatgpt:k1") == [
        ("user", "What is the capital?"),
        ("assistant", "The answer written again."),
        ("user", "Thanks."),
    ]
    assert "1 in branches that were left" in capsys.readouterr().out


HIDDEN = [
    ("system", "You are ChatGPT.", {}),
    ("assistant", "import os", {"kind": "code", "recipient": "python"}),
    ("tool", {"text": "12.5"}, {"kind": "execution_output"}),
    ("assistant", {"thoughts": [{"content": "hm"}]}, {"kind": "thoughts"}),
    ("assistant", {"content": "Thought for 5 s"}, {"kind": "reasoning_recap"}),
    ("assistant", "secret", {"metadata": {"is_visually_hidden_from_conversation": True}}),
    ("assistant", "analysis", {"channel": "analysis"}),
    ("user", {"user_profile": "p"}, {"kind": "user_editable_context"}),
]


def test_what_chatgpt_hides_stays_hidden_and_is_counted(tmp_path, capsys):
    nodes = [root(), node("n0", "root", "user", "Hello.")]
    for number, (role, text, more) in enumerate(HIDDEN, start=1):
        nodes.append(node(f"n{number}", f"n{number - 1}", role, text, **more))
    nodes.append(node("z", f"n{len(HIDDEN)}", "assistant", "Hi!"))
    bring(tmp_path, "chatgpt", one_file(tmp_path / "in", chatgpt("k1", nodes, "z")))
    assert said(tmp_path, "chatgpt:k1") == [("user", "Hello."), ("assistant", "Hi!")]
    assert f"left out\t{len(HIDDEN)}: " in capsys.readouterr().out


def test_saved_memories_and_custom_instructions_wait_and_are_not_believed(tmp_path):
    about = {
        "about_user_message": "I am a nurse.\nI live in Bonn.",
        "about_model_message": "Be brief.",
    }
    nodes = [
        root(),
        node(
            "s",
            "root",
            "user",
            {},
            kind="user_editable_context",
            metadata={"is_user_system_message": True, "user_context_message_data": about},
        ),
        node("a", "s", text="Hello."),
        node(
            "m", "a", "assistant", "Has a cat called Miso.\nHas a cat called Miso.", recipient="bio"
        ),
    ]
    path = one_file(tmp_path / "in", chatgpt("k1", nodes, "m"))
    for _ in range(2):
        bring(tmp_path, "chatgpt", path, person="telegram:42")
    facts = pending(tmp_path, "person:telegram:42")
    told = ["Be brief.", "Has a cat called Miso.", "I am a nurse.", "I live in Bonn."]
    assert sorted(one.text for one in facts) == told
    assert {one.status for one in facts} == {"pending"}
    assert {one.origin for one in facts} == {"import"}
    assert all(one.evidence[0].tape.startswith("chatgpt:memory-") for one in facts)
    assert {one.evidence[0].who for one in facts} == {"ChatGPT's memory"}


def pending(home, scope):
    async def found():
        async with tapes(home, read_only=True) as store:
            return (await read_session_memory(store, scope)).facts.pending()

    return anyio.run(found)


def test_what_was_not_to_be_remembered_is_marked_so(tmp_path):
    path = one_file(tmp_path / "in", {**talk("k1", "My secret."), "is_do_not_remember": True})
    bring(tmp_path, "chatgpt", path)
    (only,) = messages(tmp_path, "chatgpt:k1")
    assert only.meta["paused"] is True
    assert only.meta["origin"] == "import:chatgpt"
    assert only.meta["private"] is True


@pytest.mark.parametrize(
    "odd",
    [
        {"mapping": {}},
        {"mapping": {"a": None}, "current_node": "a"},
        {"mapping": {"a": {"parent": "a", "message": None}}, "current_node": "a"},
        {"mapping": {"a": {"message": {"author": None, "content": None}}}, "current_node": ["a"]},
        {"mapping": {"a": {"message": {"author": {"role": "user"}, "content": {"parts": 7}}}}},
        {"id": "../../etc/passwd", "mapping": {}},
        {"mapping": {"a": {"message": {"create_time": 10**400}}}},
        {"id": {}, "mapping": {"a": {"children": 3, "parent": 4, "message": "text"}}},
    ],
)
def test_an_odd_conversation_costs_only_itself(tmp_path, odd, capsys):
    path = one_file(tmp_path / "in", odd, talk("good", "Fine."))
    assert bring(tmp_path, "chatgpt", path) == 0
    assert said(tmp_path, "chatgpt:good") == [("user", "Fine.")]
    assert "skipped\t1 conversation without a visible message" in capsys.readouterr().out


def test_a_hostile_id_becomes_a_harmless_session(tmp_path, capsys):
    keys = ("../../etc/passwd", "a:b c", "\ud800", "x" * 5_000, "\x1b[2J")
    path = one_file(tmp_path / "in", *(talk(key, "Words.") for key in keys))
    assert bring(tmp_path, "chatgpt", path) == 0
    assert "\x1b" not in capsys.readouterr().err
    files = [one.relative_to(tmp_path) for one in tmp_path.rglob("*") if one.is_file()]
    assert all(one.parts[0] in ("tapes", "in") for one in files)


TREES = st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=30)


@given(TREES, st.integers(-1, 30))
def test_any_tree_gives_each_node_at_most_once_and_ends(tree, current):
    """Parents may be missing, form a circle or come later; the way shown follows them."""
    mapping = {
        str(one): {
            "parent": str(parent),
            "children": [str(parent)] if odd else None,
            "message": None,
        }
        for one, (parent, odd) in enumerate(tree)
    }
    found = linear_nodes(mapping, str(current))
    assert len(found) == len(set(found))
    assert set(found) <= set(mapping)
    assert bool(found) == bool(mapping)
    if str(current) in mapping:
        assert found[-1] == str(current)
    for before, after in itertools.pairwise(found):
        named = mapping[after]["parent"] not in mapping
        assert mapping[after]["parent"] == before or (
            named and after in (mapping[before]["children"] or [])
        )
