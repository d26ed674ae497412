"""What the command line shows of tapes."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pytest

from bot.cli.main import main
from bot.cli.tape import list_tapes, printable, show_tape, show_turn
from bot.memory.records.conversation_entries import TURN_START
from bot.runtime.app.tape_stores import build_tape_store
from bot.runtime.settings import load_settings
from bot.tape.entries import message
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply


@pytest.fixture
async def talk(tmp_path):
    model = ScriptedModel(lambda _: text_reply("fine"))
    async with session_host(tmp_path, model) as host:
        for text in ("my name is Ada", "remember: I like tea", "and now?"):
            await host.channel.ask(text)
        starts = await host.events(TURN_START)
    return [entry.data["turn"] for entry in starts], model


def _settings(tmp_path):
    return load_settings(home=tmp_path)


async def test_what_the_model_saw_in_a_turn_is_shown_again_to_the_letter(tmp_path, talk, capsys):
    turns, model = talk
    for turn, request in zip(turns, model.requests_for(), strict=True):
        await anyio.to_thread.run_sync(
            lambda turn=turn: show_turn(_settings(tmp_path), "fake:1", turn)
        )
        shown = capsys.readouterr().out
        wanted = "".join(f"--- {m['role']}\n{m['content']}\n" for m in request.messages)
        assert shown == wanted


async def test_a_timeline_names_who_said_what(tmp_path, talk, capsys):
    def look():
        show_tape(_settings(tmp_path), "fake:1")
        list_tapes(_settings(tmp_path))

    await anyio.to_thread.run_sync(look)
    shown = capsys.readouterr().out
    assert "my name is Ada" in shown
    assert "tapebot: fine" in shown
    assert "── session/start" in shown
    assert "fake:1\t" in shown
    assert "turn.start" not in shown


def test_what_is_on_a_tape_cannot_steer_the_terminal():
    assert printable("a\x1b[31mb\x07\n\tc\ud800") == "a[31mb\n\tc"


async def _problems(home):
    store = build_tape_store(_settings(home))
    await store.create_tape("fake:1")
    said = [("p1", "the red boat"), ("p2", "the green boat"), (None, "any boat")]
    await store.append_many("fake:1", [message("user", text, problem=p) for p, text in said])
    await store.close()


def test_a_search_by_problem_shows_what_belongs_to_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TAPEBOT_HOME", str(tmp_path))
    anyio.run(_problems, tmp_path)
    for options, wanted in (
        (["--problem", "p1"], {"red"}),
        (["--problem", "general"], {"any"}),
        (["--problem", "p2", "--session", "fake:1"], {"green"}),
        ([], {"red", "green", "any"}),
    ):
        assert main(["tape", "search", "boat", *options]) == 0
        shown = capsys.readouterr().out
        assert {word for word in ("red", "green", "any") if word in shown} == wanted
    assert main(["tape", "search", "boat", "--problem", "p3"]) == 1
    assert "Nothing found." in capsys.readouterr().err
