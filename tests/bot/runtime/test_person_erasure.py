"""One command erases everything of a person, and nothing of the others."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import anyio
import pytest

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.link import link_commands
from bot.agent.notebook import NotebookModel
from bot.bus import Answer, Attachment, Sender
from bot.bus.media.blobs import FolderBlobs
from bot.cli.main import main
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply
from bot.transfer.backup_key import signer_of, signing_key
from bot.transfer.erased_list import ERASED_LIST, copy_list, erase_again

ROOT = Path(__file__).parents[3]
BOB = Sender("8", "Bob")
# A quotation mark, as chance puts the name into digests.
WORDS = (b"zebrafinch", b"rent is 950", b'"Ada', b"Ada Two")


KILLED = """
import os, signal, sys

done, at = 0, int(sys.argv.pop(1))

def guarded(call):
    def change(*args, **kwargs):
        global done
        if not (type(args[0]) is int and args[0] < 3):
            done += 1
            if done == at:
                os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)
    return change

for name in ("write", "pwrite", "rename", "replace", "unlink"):
    setattr(os, name, guarded(getattr(os, name)))

from bot.cli.main import main

main()
"""
"""A run of the command line that dies at so many changes of files."""


def killed(home: Path, at: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(home, "-c", KILLED, str(at), *arguments)


async def command(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()

    def ends() -> int:
        with patch.dict(os.environ, environment(home)):
            return main(arguments)

    with redirect_stdout(out), redirect_stderr(err):
        code = await anyio.to_thread.run_sync(ends)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(home),
        cwd=home.parent,
        input="",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "TAPEBOT_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "TAPEBOT_TIMEZONE": "UTC",
    }


@contextmanager
def running(home: Path):
    process = subprocess.Popen(
        [sys.executable, "-m", "bot"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(home),
        cwd=home.parent,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write("/status\n")
        process.stdin.flush()
        process.stdout.readline()
        yield
    finally:
        process.communicate(timeout=60)


def holding(home: Path, word: bytes) -> list[str]:
    """Return the files with a word, packed ones unpacked."""
    found = []
    for path in home.rglob("*"):
        held = path.read_bytes() if path.is_file() else b""
        if word in (gzip.decompress(held) if path.suffix == ".gz" else held):
            found.append(str(path.relative_to(home)))
    return found


async def live(home: Path) -> None:
    """Have Ada and Bob talk, each alone, and both in a group."""
    async with session_host(home, NotebookModel(), files_mb=1) as host:
        ask = host.channel.ask
        blob = await FolderBlobs(home / "blobs").put(b"The rent is 950.")
        sent = Attachment("document", "lease.txt", "text/plain", 16, blob)
        await host.channel.wait_for_answer(await host.channel.send("look", attachments=(sent,)))
        for text in (
            "/files keep",
            "My zebrafinch is called Pip.",
            "/new",
            "Where does my zebrafinch live?",
            "/remind in 3 days feed the zebrafinch",
            "/memory add I love my zebrafinch.",
            "/memory export",
        ):
            await ask(text)
        for text in ("My dog is called Rex.", "/new", "What is my dog called?"):
            await ask(text, sender=BOB, chat="8")
        in_group = {"chat": "-5", "private": False}
        await ask("My zebrafinch sings.", **in_group)
        await ask("/remind in 2 days buy food for the zebrafinch", **in_group)
        await ask("My dog Rex barks.", sender=BOB, **in_group)
        told = {"quote": "Ada: My zebrafinch sings.", "sender": BOB, **in_group}
        await host.channel.wait_for_answer(await host.channel.send("So I hear.", **told))
        await ask("/new", sender=BOB, **in_group)


async def move_in(home: Path, talk: Path) -> None:
    """Have Ada link a second account, say something there, and import what she said to ChatGPT."""
    hosts = []

    async def send(answer: Answer) -> None:
        await hosts[0].bus.send(answer)

    async def language_of(_: str) -> str:
        return "en"

    links = builtin_commands(link_commands(send, language_of))
    async with session_host(home, NotebookModel(), commands=links) as host:
        hosts.append(host)
        other = host.add_channel("other")
        asked = await host.channel.send("/link", message_id="link")
        offer = await host.channel.wait_for_answer(asked)
        code = next(one for one in offer.split("`") if one.startswith("/link "))
        await other.ask(f"{code} yes", chat="9", sender=Sender("9", "Ada Two"))
        confirmed = await host.channel.send("/link confirm", message_id="confirm")
        assert "Linked" in await host.channel.wait_for_answer(confirmed)
        for text in ("The rent is 950.", "/new", "/memory add I sing to my zebrafinch."):
            await other.ask(text, chat="9", sender=Sender("9", "Ada Two"))
        await other.ask("Ada Two is here", chat="-6", sender=Sender("9", "Ada Two"), private=False)
    said = {"role": "user"}, {"parts": ["A zebrafinch of Ada's sat here."], "content_type": "text"}
    message = {"author": said[0], "content": said[1], "create_time": 1_700_000_000.0}
    nodes = {"a": {"message": None}, "b": {"id": "b", "parent": "a", "message": message}}
    talk.write_text(json.dumps([{"id": "k", "mapping": nodes, "current_node": "b"}]))
    told = await command(home, "import", "chatgpt", str(talk), "--for", "fake:7")
    assert told.returncode == 0, told.stderr


@pytest.mark.timeout(400)
@pytest.mark.slow
@pytest.mark.parametrize("beside", ["nothing", "a running bot", "a killed run"])
async def test_no_byte_of_a_person_is_left_and_the_others_keep_theirs(tmp_path, beside):
    home = tmp_path / "home"
    await live(home)
    await move_in(home, tmp_path / "conversations.json")
    assert all(holding(home, word) for word in WORDS)
    if beside == "nothing":
        told = await command(home, "memory", "erase", "fake:7")
        assert told.returncode != 0
        assert re.search(
            r"fake:7, other:9: 3 conversations, \d+ messages, \d facts; .* 2 groups", told.stdout
        )
        assert "add --yes" in told.stderr
        assert all(holding(home, word) for word in WORDS)
        done = await command(home, "memory", "erase", "fake:7", "--yes")
    elif beside == "a running bot":
        with running(home):
            done = await command(home, "memory", "erase", "fake:7", "--yes")
    else:
        died = killed(home, 40, "memory", "erase", "fake:7", "--yes")
        assert died.returncode == -signal.SIGKILL, died.stderr
        # Whoever runs it again may name either account.
        done = await command(home, "memory", "erase", "other:9", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert {word: holding(home, word) for word in WORDS} == {word: [] for word in WORDS}
    assert (await command(home, "tape", "verify")).returncode == 0
    exported = await command(home, "tape", "export", "--output", str(tmp_path / "exported"))
    assert exported.returncode == 0
    assert holding(tmp_path / "exported", b"zebrafinch") == []
    assert holding(tmp_path / "exported", b"Rex")
    async with session_host(home, NotebookModel(), files_mb=1) as host:
        assert "Rex" in await host.channel.ask("What is my dog called?", sender=BOB, chat="8")
        # A channel numbers its messages from 1 again, so these say ids of their own.
        asked = await host.channel.send("What is my zebrafinch called?", message_id="later-1")
        assert "Pip" not in await host.channel.wait_for_answer(asked)
        asked = await host.channel.send(
            "/schedules", chat="-5", private=False, message_id="later-2"
        )
        assert "zebrafinch" not in await host.channel.wait_for_answer(asked)


async def test_what_others_quote_of_a_person_in_a_group_goes_with_the_answers_to_it(tmp_path):
    home, group = tmp_path / "home", {"chat": "-5", "private": False}
    replies = [text_reply(text) for text in ("Fine.", "Fine.", "Ada has a songbird.", "A dog.")]
    # The clock is set back before the erasure.
    ahead = ManualClock(datetime(2099, 1, 1, tzinfo=UTC))
    async with session_host(home, ScriptedModel(replies), files_mb=1, clock=ahead) as host:
        await host.channel.ask("My zebrafinch sings.", **group)
        for quote, said in (
            ("Ada: My zebrafinch sings", "I agree about this"),
            ('In reply to "Ada Old" (7):\nLook', "And I about that"),
            ('In reply to "Cleo" (9):\nRex is in Canada', "Who barks?"),
        ):
            asked = await host.channel.send(said, quote=quote, sender=BOB, **group)
            await host.channel.wait_for_answer(asked)
    signer, before = signer_of(signing_key(home)), tmp_path / "before"
    shutil.copytree(home, before)
    assert (await command(home, "memory", "erase", "fake:7", "--yes")).returncode == 0
    copy_list(home / ERASED_LIST, before / ERASED_LIST)
    await erase_again(before, signer)
    gone = (b"zebrafinch", b"Ada:", b"Ada Old", b"Ada has", b"songbird")
    for place in (home, before):
        assert {word: holding(place, word) for word in gone} == {word: [] for word in gone}
        for kept in (b"I agree about this", b"And I about that", b"Rex is in Canada", b"A dog."):
            assert holding(place, kept)
        assert (await command(place, "tape", "verify")).returncode == 0
