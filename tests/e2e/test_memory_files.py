"""``TAPEBOT_MEMORY_FILES``: memory as files that people read, made from the tapes and never read back."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from filelock import FileLock
from link_home import home as link_home
from test_e2e_first_conversation import run, started

from bot.bus import Sender
from bot.core.clock import SystemClock
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply
from bot.transfer.memory_folder import HISTORY_FILE, MEMORY_FILE, folder_name
from bot.transfer.memory_markdown import NOTICE

SECONDS = 30
SESSION = "console:local"
EVE = Sender("13", "Eve")
MODEL = ScriptedModel(lambda _: text_reply("fine"))


def files(folder: Path, session: str = SESSION) -> tuple[str, str]:
    """Return the two files of a session; empty where they are not."""
    into = folder / folder_name(session)
    names = (MEMORY_FILE, HISTORY_FILE)
    texts = [(into / one).read_text() if (into / one).exists() else "" for one in names]
    return texts[0], texts[1]


def everything(folder: Path) -> str:
    return "".join(one.read_text() for one in folder.rglob("*") if one.is_file())


def asks(host):
    async def ask(text: str, **more: object) -> str:
        return await host.channel.wait_for_answer(await host.channel.send(text, **more))

    return ask


async def until(condition):
    with anyio.fail_after(SECONDS):
        while not condition():
            await anyio.sleep(0.01)  # files have no event


@pytest.mark.slow
async def test_what_is_remembered_and_summed_up_is_in_two_private_files(tmp_path):
    kept = tmp_path / "kept"
    said = "Remember that I like jasmine tea.\nMy cat is called Mimi.\n/new\n"
    code, _, _ = await run(tmp_path, said, TAPEBOT_MEMORY_FILES=str(kept))
    assert code == 0
    memory, history = files(kept)
    assert memory.splitlines()[0] == history.splitlines()[0] == NOTICE
    assert "- I like jasmine tea." in memory.splitlines()
    [paragraph] = [one for one in history.split("\n\n")[1:] if one.strip()]
    assert re.match(r"\[\d{4}-\d\d-\d\d \d\d:\d\d\] ", paragraph)
    assert "Mimi" in paragraph
    modes = {one.stat().st_mode & 0o777 for one in kept.rglob("*") if one.is_file()}
    assert modes == {0o600}
    assert {one.stat().st_mode & 0o777 for one in (kept, *kept.glob("*/"))} == {0o700}


@pytest.mark.slow
async def test_what_an_owner_writes_into_a_file_is_overwritten_and_never_believed(tmp_path):
    kept = tmp_path / "kept"
    setting = {"TAPEBOT_MEMORY_FILES": str(kept)}
    await run(tmp_path, "Remember that I like jasmine tea.\n", **setting)
    before = files(kept)
    (kept / folder_name(SESSION) / MEMORY_FILE).write_text("# Likes\n\n- I like coffee.\n")
    (kept / folder_name(SESSION) / HISTORY_FILE).unlink()
    _, told, _ = await run(tmp_path, "/memory\n", **setting)
    assert "jasmine" in told
    assert "coffee" not in told
    assert files(kept) == before


@pytest.mark.slow
async def test_words_are_in_no_file_when_it_is_said_that_they_are_forgotten(tmp_path):
    kept = tmp_path / "kept"
    setting = {"TAPEBOT_MEMORY_FILES": str(kept)}
    said = "Remember that I like jasmine tea.\nRemember that my cat is called Mimi.\n/new\n"
    await run(tmp_path, said, **setting)
    assert all("jasmine" in one for one in files(kept))
    async with started(tmp_path, **setting) as process:
        lines = BufferedByteReceiveStream(process.stdout)

        async def answer(text: str, words: bytes) -> bytes:
            await process.stdin.send(f"{text}\n".encode())
            with anyio.fail_after(SECONDS):
                while words not in (line := await lines.receive_until(b"\n", 100_000)):
                    pass
            return line

        line = await answer("/memory forget jasmine", b"/memory forget yes")
        number = re.search(rb"forget yes (\d+)", line)[1].decode()
        await answer(f"/memory forget yes {number}", b"Forgotten")
        assert "jasmine" not in everything(kept)
        await until(lambda: "Mimi" in files(kept)[0])
        assert "jasmine" not in everything(kept)


@pytest.mark.slow
async def test_kill_9_between_a_change_and_its_file_is_made_good_at_the_next_start(tmp_path):
    kept = tmp_path / "kept"
    setting = {"TAPEBOT_MEMORY_FILES": str(kept)}
    await run(tmp_path, "Remember that I like jasmine tea.\n", **setting)
    with FileLock(kept / ".tapebot.lock"):
        # Nothing can be written there meanwhile.
        async with started(tmp_path, **setting) as process:
            lines = BufferedByteReceiveStream(process.stdout)
            await process.stdin.send(b"Remember that my cat is called Mimi.\n")
            with anyio.fail_after(SECONDS):
                while b"Mimi" not in await lines.receive_until(b"\n", 100_000):
                    pass
            process.send_signal(signal.SIGKILL)
            await process.wait()
        assert "Mimi" not in files(kept)[0]
    await run(tmp_path, "", **setting)
    assert "jasmine" in files(kept)[0]
    assert "Mimi" in files(kept)[0]


@pytest.mark.slow
async def test_a_folder_that_cannot_be_written_disturbs_no_turn_and_is_tried_again(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("a file stands here")
    async with started(tmp_path, TAPEBOT_MEMORY_FILES=str(kept)) as process:
        lines = BufferedByteReceiveStream(process.stdout)

        async def remember(what: str) -> None:
            await process.stdin.send(f"Remember that I like {what}.\n".encode())
            with anyio.fail_after(SECONDS):
                while what.encode() not in await lines.receive_until(b"\n", 100_000):
                    pass

        def complaints() -> int:
            return (tmp_path / "home/logs/tapebot.log").read_text().count("cannot be written")

        await remember("tea")
        await until(lambda: complaints() == 1)
        await remember("rain")
        kept.unlink()
        await remember("snow")
        await until(lambda: "snow" in files(kept)[0])
        assert "tea" in files(kept)[0]
        assert complaints() == 1


async def test_a_folder_has_what_its_conversation_believes_and_nobody_elses_facts(tmp_path):
    kept = tmp_path / "kept"
    made = session_host(tmp_path, MODEL, clock=SystemClock(), memory_files=kept)
    async with made as host:
        ask = asks(host)
        await ask("/memory add I collect stamps")
        await ask("/memory add my desk is green", chat="2", sender=EVE)
        await ask("/memory add the team meets on Fridays", chat="-3", private=False)
        await ask("/memory add the office is in Oslo")
        await ask("/memory share 2")
        await host.memory_files.flush()
        private, eves, group = (files(kept, f"fake:{chat}")[0] for chat in ("1", "2", "-3"))
        shared = files(kept, WORKSPACE_SCOPE)[0]
    assert "stamps" in private
    assert "stamps" not in eves + group + shared
    assert "green" in eves
    assert "green" not in private + group + shared
    assert "Fridays" in group
    assert "Fridays" not in private + eves + shared
    assert "Oslo" in shared


async def test_what_was_private_leaves_the_file_of_a_chat_that_became_a_group(tmp_path):
    kept = tmp_path / "kept"
    made = session_host(tmp_path, MODEL, clock=SystemClock(), memory_files=kept)
    async with made as host:
        await host.channel.ask("/memory add I collect stamps")
        await host.channel.ask("hello", chat="5")
        await host.memory_files.flush()
        assert "stamps" in files(kept, "fake:5")[0]
        await asks(host)("I am Eve", chat="5", sender=EVE, private=False, role="member")
        await host.memory_files.flush()
        assert "stamps" not in everything(kept / folder_name("fake:5"))
        assert "stamps" in files(kept, "fake:1")[0]


async def test_edited_undone_and_cleared_words_leave_the_files(tmp_path):
    kept = tmp_path / "kept"
    made = session_host(tmp_path, MODEL, clock=SystemClock(), memory_files=kept)
    async with made as host:
        ask = host.channel.ask
        await ask("/memory add I collect stamps")
        await until(lambda: "stamps" in files(kept, "fake:1")[0])
        await ask("/memory edit 1 I collect coins")
        await until(lambda: "coins" in files(kept, "fake:1")[0])
        assert "stamps" not in everything(kept)
        await ask("/memory undo")
        await until(lambda: "stamps" in files(kept, "fake:1")[0])
        assert "coins" not in everything(kept)


@pytest.mark.slow
@pytest.mark.parametrize("running", [True, False])
async def test_a_reset_conversation_has_no_files_when_it_is_said_to_be_empty(tmp_path, running):
    kept = tmp_path / "kept"
    setting = {"TAPEBOT_MEMORY_FILES": str(kept)}
    await run(tmp_path, "My cat is called Mimi.\n/new\n", **setting)
    for _ in range(5):
        # The program may end before a file is written; its next start writes it.
        if "Mimi" not in files(kept)[1]:
            await run(tmp_path, "", **setting)
    assert "Mimi" in files(kept)[1]
    reset = ("tape", "reset", SESSION, "--yes")
    if not running:
        code, told, _ = await run(tmp_path, "", *reset, **setting)
        assert "Mimi" not in everything(kept)
    else:
        async with started(tmp_path, **setting) as process:
            lines = BufferedByteReceiveStream(process.stdout)
            await process.stdin.send(b"/status\n")
            with anyio.fail_after(SECONDS):
                await lines.receive_until(b"onsolidat", 100_000)
            code, told, _ = await run(tmp_path, "", *reset, **setting)
            assert "Mimi" not in files(kept)[1]
    assert (code, "is empty" in told) == (0, True)


@pytest.mark.parametrize(
    "chat", ["../../up", "..", "/etc/passwd", "a\x00b", "CON", "x" * 5_000, "%2E%2E", "-rf", "ü\n"]
)
def test_no_chat_id_leads_out_of_the_folder(chat, tmp_path):
    for session in (chat, f"fake:{chat}", f".{chat}"):
        name = folder_name(session)
        assert (tmp_path / name).resolve().parent == tmp_path.resolve()
        assert not name.startswith(".")
        (tmp_path / name).mkdir()


def test_no_two_sessions_share_a_folder_also_where_capitals_make_no_difference():
    long = "x" * 200
    sessions = [
        "a:b",
        "a%3ab",
        "a%3Ab",
        "A:b",
        "a:B",
        "a/b",
        f"a:{long}1",
        f"a:{long}2",
        ".a",
        "%2Ea",
    ]
    sessions += [folder_name(one) for one in sessions]
    names = {folder_name(one).casefold() for one in set(sessions)}
    assert len(names) == len(set(sessions))


async def test_a_hostile_chat_has_its_files_inside_of_the_folder(tmp_path):
    kept = tmp_path / "kept"
    made = session_host(tmp_path, MODEL, clock=SystemClock(), memory_files=kept)
    async with made as host:
        await host.channel.ask("/memory add I collect stamps", chat="../../up")
        await host.memory_files.flush()
        found = list(tmp_path.rglob(MEMORY_FILE))
    assert found == [kept / folder_name("fake:../../up") / MEMORY_FILE]


async def test_who_joins_and_parts_again_finds_their_own_in_the_file_of_each_chat(tmp_path):
    kept = tmp_path / "memory"
    async with link_home(tmp_path) as here:
        flush = here.host.memory_files.flush
        await here.ask("fake:7", "/memory add I collect stamps")
        await here.ask("other:9", "/memory add my desk is green")
        await here.join("fake:7", "other:9")
        await flush()
        for session in ("fake:7", "other:9"):
            assert "stamps" in files(kept, session)[0]
            assert "green" in files(kept, session)[0]
        await here.part("other:9")
        await flush()
        assert "green" not in files(kept, "fake:7")[0]
        assert "stamps" in files(kept, "fake:7")[0]
        assert "stamps" not in files(kept, "other:9")[0]
        assert "green" in files(kept, "other:9")[0]


async def test_files_follow_a_parting_also_of_a_chat_that_nobody_has_open(tmp_path):
    kept = tmp_path / "memory"
    async with link_home(tmp_path, bounds=HostLimits(idle_seconds=0.05)) as here:
        flush, live = here.host.memory_files.flush, here.host.services.scopes.active_sessions
        await here.ask("fake:7", "/memory add I collect stamps")
        await here.ask("other:9", "/memory add my desk is green")
        await here.join("fake:7", "other:9")
        # Another private chat of the same person; nobody is told anything in it.
        await here.ask("other:10", "hello", sender=Sender("9", "N9"))
        await flush()
        assert "stamps" in files(kept, "other:10")[0]
        await here.host.wait_until(lambda: "other:10" not in live)
        before = await here.host.tape("other:10")
        await here.part("fake:7")
        await flush()
        assert await here.host.tape("other:10") == before
        assert "stamps" not in everything(kept / folder_name("other:10"))
        assert "green" in files(kept, "other:10")[0]


async def test_what_is_stale_is_brought_up_to_date_at_the_start_though_nobody_writes(tmp_path):
    kept = tmp_path / "kept"
    async with session_host(tmp_path, MODEL) as host:
        await host.channel.ask("/memory add I collect stamps")
    (kept / folder_name("fake:gone")).mkdir(parents=True)
    (kept / folder_name("fake:gone") / ".tapebot.json").write_text("{}")
    (kept / folder_name("fake:gone") / MEMORY_FILE).write_text("of a conversation that is no more")
    (kept / "recipes").mkdir()
    (kept / "recipes" / MEMORY_FILE).write_text("somebody else's")
    async with session_host(tmp_path, MODEL, memory_files=kept):
        await until(lambda: "stamps" in files(kept, "fake:1")[0])
    assert not (kept / folder_name("fake:gone")).exists()
    assert (kept / "recipes" / MEMORY_FILE).read_text() == "somebody else's"
