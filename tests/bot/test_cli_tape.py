"""What the command line shows of tapes."""

from __future__ import annotations

import pytest

from bot.cli.main import main
from bot.cli.tape import list_tapes, printable, show_tape, show_turn
from bot.errors import TapeNotFound
from bot.memory.window import TURN_START
from bot.settings import load_settings
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, says


async def _talk(home, model):
    async with session_host(home, model) as host:
        for text in ("my name is Ada", "remember that I like tea", "and now?"):
            await host.channel.ask(text)
        starts = [entry for entry in await host.tape() if entry.name == TURN_START]
    return [entry.data["turn"] for entry in starts]


@pytest.fixture
async def talk(tmp_path):
    model = ScriptedModel(lambda _: says("fine"))
    return await _talk(tmp_path, model), model


def _settings(tmp_path):
    return load_settings(home=tmp_path)


async def test_what_the_model_saw_in_a_turn_is_shown_again_to_the_letter(tmp_path, talk, capsys):
    import anyio.to_thread

    turns, model = talk
    for turn, request in zip(turns, model.requests, strict=True):
        await anyio.to_thread.run_sync(
            lambda turn=turn: show_turn(_settings(tmp_path), "fake:1", turn)
        )
        shown = capsys.readouterr().out
        wanted = "".join(f"--- {m['role']}\n{m['content']}\n" for m in request.messages)
        assert shown == wanted


async def test_a_timeline_names_who_said_what(tmp_path, talk, capsys):
    import anyio.to_thread

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


def test_a_tape_that_is_not_there_is_said(tmp_path):
    (tmp_path / "tapes").mkdir()
    with pytest.raises(TapeNotFound, match="no tape fake:9"):
        show_tape(_settings(tmp_path), "fake:9")


def test_what_is_on_a_tape_cannot_steer_the_terminal():
    assert printable("a\x1b[31mb\x07\n\tc\ud800") == "a[31mb\n\tc"


@pytest.mark.parametrize("count", ["0", "-1", "many", "²"])
def test_what_is_no_count_is_refused_in_plain_words(count, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["tape", "show", "console:local", "--last", count])
    assert stopped.value.code == 2
    assert f"{count!r} is no number from 1 on" in capsys.readouterr().err
