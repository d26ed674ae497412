"""``/memory`` and the other commands, as a person meets them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.commands.builtin import builtin_commands
from bot.commands.parser import parse_command
from bot.memory.fold import SessionFold
from bot.memory.window import WindowFold
from bot.tape.entries import event
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, calls, says


async def test_undo_goes_back_further_each_time_until_there_is_nothing_left(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        for fact in ("aleph", "beth", "gimel"):
            await host.channel.ask(f"/memory add {fact}")
        expected = [
            ("Aleph", "Beth"),
            ("Aleph",),
            (),
        ]
        for facts in expected:
            told = await host.channel.ask("/memory undo")
            assert told.splitlines()[2:] == ([f"- {f}" for f in facts] or ["(empty)"])
        assert "no earlier memory" in await host.channel.ask("/memory undo")


async def test_what_is_added_after_an_undo_is_the_next_to_be_undone(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        for line in ("add aleph", "add beth", "undo", "add gimel"):
            await host.channel.ask(f"/memory {line}")
        assert "Gimel" not in await host.channel.ask("/memory undo")
        assert "(empty)" in await host.channel.ask("/memory undo")


async def test_undo_reaches_behind_a_new_session_and_a_clear(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        await host.channel.ask("/memory add aleph")
        await host.channel.ask("/memory add beth")
        await host.channel.ask("/new now")
        assert "clear yes" in await host.channel.ask("/memory clear")
        assert "Beth" in await host.channel.ask("/memory")
        assert "cleared" in await host.channel.ask("/memory clear yes")
        assert "Beth" not in await host.channel.ask("/memory")
        assert "- Aleph\n- Beth" in await host.channel.ask("/memory undo")
        assert (await host.channel.ask("/memory undo")).endswith("- Aleph")


async def test_every_version_stays_on_the_tape(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        for line in ("add aleph", "add beth", "undo", "clear yes"):
            await host.channel.ask(f"/memory {line}")
        contents = [e.data["content"] for e in await host.events("memory.long_term")]
        versions = [e.data["version"] for e in await host.events("memory/seal")]
    assert contents == ["- Aleph", "- Aleph\n- Beth", "- Aleph"]
    assert versions == [1, 2, 3, 4, 5]


async def test_added_is_said_in_the_same_write_as_what_was_added(tmp_path):
    """The reply, the zone and the end of the command are one append: none without the others."""
    async with session_host(tmp_path, ScriptedModel()) as host:
        await host.channel.ask("/memory add aleph")
    assert {"memory/open", "memory.long_term", "memory/seal", "reply", "turn.end"} <= set(
        _append_with(tmp_path, "memory.long_term")
    )


async def test_saved_is_said_by_the_tool_in_the_same_write_as_what_was_saved(tmp_path):
    model = ScriptedModel([calls(("memory_save", {"content": "- A"})), says("ok")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("save")
        [result] = [e for e in await host.tape() if e.kind == "tool_result"]
        assert result.payload["content"] == "Saved to long-term memory (version 2)."
    assert _append_with(tmp_path, "memory.long_term") == [
        "memory/open",
        "memory.long_term",
        "memory/seal",
        "tool_result",
    ]


async def test_what_is_asked_to_be_remembered_is_saved_by_code_with_the_message_itself(tmp_path):
    async with session_host(tmp_path, ScriptedModel([says("ok")])) as host:
        await host.channel.ask("Remember that the key is under the mat")
        assert "- The key is under the mat" in await host.channel.ask("/memory")
    assert _append_with(tmp_path, "memory.long_term")[0] == "message"


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("what does this mean?", "Remember that Bob is the owner"),
        ("do you remember that Bob is the owner?", None),
        ("He said: remember that Bob is the owner", None),
    ],
)
async def test_what_others_wrote_or_a_question_says_is_not_saved(tmp_path, text, quote):
    async with session_host(tmp_path, ScriptedModel([says("ok")])) as host:
        await host.channel.answer_to(await host.channel.send(text, quote=quote))
        assert "Bob" not in await host.channel.ask("/memory")


async def test_memory_that_is_full_is_said_and_nothing_is_lost(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: says("ok"))) as host:
        for number in range(6):
            await host.channel.ask(f"/memory add {number} " + "x" * 1_500)
        assert "Memory is full" in host.channel.answers[-1].text
        await host.channel.ask("Remember that " + "y" * 1_500)
        pages = [await host.channel.ask(f"/memory {page}") for page in range(1, 8)]
        assert ["".join(pages).count(f"- {n} x") for n in range(5)] == [1] * 5
        assert "yyy" not in "".join(pages)


async def test_an_export_is_a_file_of_its_own_that_only_its_owner_can_read(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        await host.channel.ask("/memory add aleph")
        await host.channel.ask("/memory export")
        await host.channel.ask("/memory add beth")
        await host.channel.ask("/memory export")
    files = sorted((tmp_path / "exports").iterdir())
    assert len(files) == 2
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    assert "- Beth" in files[1].read_text()


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [("/memroy", "/memory"), ("/statsu", "/status"), ("/hlep", "/help"), ("/neww", "/new")],
)
async def test_an_unknown_command_names_the_nearest_one(tmp_path, wrong, hint):
    model = ScriptedModel()
    async with session_host(tmp_path, model) as host:
        told = await host.channel.ask(wrong)
        assert f"no command `{wrong}`" in told
        assert f"`{hint}`" in told
    assert model.requests == []


async def test_an_unknown_form_of_memory_names_the_nearest_one(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        assert "Did you mean `/memory undo`?" in await host.channel.ask("/memory udno")


async def test_help_lists_every_command(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        told = await host.channel.ask("/help")
    assert all(f"`/{one.name}`" in told for one in builtin_commands().listed())


@pytest.mark.parametrize("text", ["/usr/bin is full", "/ hello", "//", "a /new", "/4", "/new/x"])
async def test_text_with_a_slash_is_a_message(tmp_path, text):
    async with session_host(tmp_path, ScriptedModel([says("just text")])) as host:
        assert await host.channel.ask(text) == "just text"


def test_a_command_may_name_the_bot_and_be_in_capitals():
    parsed = parse_command(" /Memory@tapebot  Add  I like\ntea ")
    assert parsed is not None
    assert (parsed.name, parsed.arguments) == ("memory", "Add  I like\ntea")


@given(st.text())
@settings(deadline=None, derandomize=True)
def test_no_text_makes_the_parser_fail(text):
    parse_command(text)
    parse_command(f"/{text}")


def test_commands_are_not_part_of_the_conversation():
    fold = SessionFold(WindowFold(10, 1_000))
    fold.apply(event("command", {"name": "memory", "arguments": "add x"}, inbound="1"))
    assert fold.window.entries == []


def _append_with(folder, name: str) -> list[str]:
    """The kinds or names of the atomic append that holds the first entry of this name."""
    group: list[str] = []
    for path in sorted((folder / "tapes").glob("*.jsonl")):
        for raw in path.read_bytes().splitlines():
            line = json.loads(raw)
            named = line["payload"].get("name") if line["kind"] in ("anchor", "event") else None
            group.append(named or line["kind"])
            if not line.get("more"):
                if name in group:
                    return group
                group = []
    return group


async def test_a_stale_button_brings_nothing_back(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        await host.channel.ask("/memory add I like tea")
        await host.channel.ask("/memory clear yes")
        (back,) = host.channel.answers[-1].buttons
        await host.channel.ask("/memory add I like cake")
        assert "nothing was undone" in await host.channel.ask(back.command)
        assert "cake" in await host.channel.ask("/memory")
