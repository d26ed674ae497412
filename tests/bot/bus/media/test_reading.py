"""What becomes of the documents that people send."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zlib

import anyio
import pytest
from media_pdfs import bomb, pdf

from bot.bus.media import documents as reading
from bot.bus.media.documents import UNREADABLE, read_document, read_text
from bot.bus.media.media_types import PDF

TEXT = "Grüße,\nJürgen – 5 €\n"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
)
def test_text_is_read_in_the_encoding_that_it_was_written_in(encoding):
    assert read_text(TEXT.encode(encoding)).text == TEXT.strip()


def test_east_asian_text_is_read():
    assert read_text("東京の天気".encode()).text == "東京の天気"
    assert read_text("東京の天気".encode("utf-16")).text == "東京の天気"


def test_bytes_that_no_windows_page_has_are_still_read():
    assert read_text(b"caf\xe9 \x81 noir").text is not None


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(256)) * 8,
        b"PK\x03\x04" + zlib.compress(b"office " * 999),
        b"\x7fELF\x02\x01\x01" + bytes(64),
        b"MZ\x90\x00" + bytes(200),
    ],
    ids=["all-bytes", "archive", "elf", "exe"],
)
def test_what_is_not_text_is_refused(data):
    assert read_text(data) == reading.DocumentText(None, UNREADABLE)


def test_a_coloured_log_is_read_without_its_colours():
    assert read_text(b"\x1b[31mERROR\x1b[0m disk full\r\n").text == "ERROR disk full"


def test_a_long_text_is_cut_with_a_word_that_it_was():
    found = read_text(b"a" * 120_000)
    assert len(found.text or "") == 50_000
    assert found.note == "only the first 50,000 of 120,000 characters were read"


def test_an_empty_text_says_so():
    assert read_text(b" \n\t ").note == "the file has no text"


async def test_a_pdf_is_read_page_by_page():
    found = await read_document(pdf(["Dear Ada", "Kind regards"]), PDF)
    assert (found.text, found.note) == ("Dear Ada\n\nKind regards", None)


async def test_a_long_pdf_is_cut_with_a_word_that_it_was():
    found = await read_document(pdf([f"page {n} " + "x" * 50 for n in range(40)]), PDF, limit=200)
    assert len(found.text or "") <= 200
    assert "only the first" in (found.note or "")


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


async def test_a_pdf_that_keeps_its_reader_busy_for_ever_costs_bounded_time(tmp_path, monkeypatch):
    busy = tmp_path / "busy.py"
    busy.write_text("import sys; sys.stdin.buffer.read()\nwhile True: pass\n")
    monkeypatch.setattr(reading.program, "__file__", str(busy))
    with anyio.fail_after(30):
        found = await read_document(pdf(["x"]), PDF, seconds=0.3)
    assert found.note == "reading the PDF took too long"


@pytest.mark.slow
async def test_one_page_that_takes_too_long_costs_bounded_time():
    with anyio.fail_after(30):
        found = await read_document(bomb(4), PDF, seconds=3)
    assert found == reading.DocumentText(None, "reading the PDF took too long")


LATE = """
import runpy, time
import pypdf

read, clock, begun = pypdf.PageObject.extract_text, time.monotonic, []

def reading(page):
    begun.append(page)
    return read(page)

pypdf.PageObject.extract_text = reading
time.monotonic = lambda: clock() + (1_000 if len(begun) > 1 else 0)
runpy.run_path(READER, run_name="__main__")
"""
"""A reader whose time is up once it has begun a second page, however fast or slow the machine is."""


@pytest.mark.slow
async def test_what_was_read_before_a_page_that_takes_too_long_is_kept(tmp_path, monkeypatch):
    late = tmp_path / "late.py"
    late.write_text(LATE.replace("READER", repr(reading.program.__file__)))
    monkeypatch.setattr(reading.program, "__file__", str(late))
    with anyio.fail_after(60):
        found = await read_document(bomb(4, after=["Dear Ada"]), PDF, seconds=60)
    note = "only the first 1 of 2 pages were read: the rest took too long"
    assert found == reading.DocumentText("Dear Ada", note)


@pytest.mark.slow
def test_a_reader_that_cannot_look_at_the_time_is_ended_by_the_system():
    """Where a library never comes back to Python, no handler of signals runs."""
    code = (
        "import runpy, signal, sys; signal.setitimer = lambda *_: None; "
        f"runpy.run_path({reading.program.__file__!r}, run_name='__main__')"
    )
    command = [sys.executable, "-c", code, "pdf", "50000", "0.5", str(os.getpid())]
    done = subprocess.run(command, input=bomb(4), capture_output=True, timeout=30, check=False)
    assert done.returncode == -signal.SIGXCPU


async def test_a_reader_that_the_system_ended_took_too_long(tmp_path, monkeypatch):
    ended = tmp_path / "ended.py"
    ended.write_text(
        "import os, signal, sys\nsys.stdin.buffer.read()\nos.kill(os.getpid(), signal.SIGXCPU)\n"
    )
    monkeypatch.setattr(reading.program, "__file__", str(ended))
    with anyio.fail_after(20):
        found = await read_document(pdf(["x"]), PDF)
    assert found.note == "reading the PDF took too long"


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
