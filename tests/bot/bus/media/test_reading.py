"""What becomes of the documents that people send."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import anyio
import pytest
from media_pdfs import bomb, pdf

from bot.bus.media import documents as reading
from bot.bus.media.documents import read_document
from bot.bus.media.media_types import PDF


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (pdf(["", ""]), "no text was found in the PDF; scanned pages cannot be read"),
        (pdf(["secret"], password="x"), "the PDF has a password and cannot be read"),
        (b"%PDF-1.7\nthis is none", "the PDF is damaged and cannot be read"),
        (pdf(["cut short"])[:-300], None),
    ],
    ids=["scan", "password", "garbage", "truncated"],
)
async def test_a_pdf_that_cannot_be_read_says_why(data, note):
    found = await read_document(data, PDF)
    assert found.note == note or (note is None and (found.text or found.note))


PARENT = r"""
import os, subprocess, sys
command = [sys.executable, "-I", sys.argv[1], "pdf", "50000", "60", str(os.getpid())]
child = subprocess.Popen(command, stdin=subprocess.PIPE)
child.stdin.write(sys.stdin.buffer.read())
child.stdin.close()
sys.stdout.write("reading\n")
sys.stdout.flush()
child.wait()
"""


async def test_a_reader_ends_with_the_bot_that_was_killed():
    command = [sys.executable, "-c", PARENT, reading.program.__file__]
    async with await anyio.open_process(command, stderr=subprocess.DEVNULL) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        await parent.stdin.send(bomb(4))
        await parent.stdin.aclose()
        with anyio.fail_after(30):
            assert await parent.stdout.receive() == b"reading\n"
        os.kill(parent.pid, signal.SIGKILL)
        # The reader has this end of the pipe as well: it closes when both are gone.
        with anyio.fail_after(20), pytest.raises(anyio.EndOfStream):
            await parent.stdout.receive()


@pytest.mark.parametrize(
    "program", ["import os; os.abort()", "import sys; sys.stdin.buffer.read(); sys.exit(3)"]
)
async def test_a_pdf_that_kills_its_reader_is_only_a_word(tmp_path, monkeypatch, program):
    broken = tmp_path / "broken.py"
    broken.write_text(program)
    monkeypatch.setattr(reading.program, "__file__", str(broken))
    with anyio.fail_after(20):
        found = await read_document(pdf(["x"]) + bytes(4_000_000), PDF)
    assert found.note == "the PDF cannot be read: it breaks the reader"


@pytest.mark.slow
async def test_a_pdf_that_unpacks_to_more_than_memory_is_only_a_word():
    with anyio.fail_after(30):
        found = await read_document(bomb(200), PDF, seconds=15)
    assert found == reading.DocumentText(None, "the PDF needs too much memory to be read")


async def test_no_secret_of_the_environment_reaches_the_reader(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEBOT_MODEL_API_KEY", "sk-secret")
    spy = tmp_path / "spy.py"
    spy.write_text(
        "import json, os, sys\nsys.stdin.buffer.read()\n"
        "print(json.dumps({'text': ' '.join(os.environ) or 'nothing', 'note': None}))\n"
    )
    monkeypatch.setattr(reading.program, "__file__", str(spy))
    found = await read_document(pdf(["x"]), PDF)
    assert "TAPEBOT" not in (found.text or "")
