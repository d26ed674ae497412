"""A tape goes out as lines and comes back as it was."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
import pytest
from exchange_files import NANOBOT, export, read, settings, tapes
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sampling import examples

from bot.cli.imports import import_jsonl, import_nanobot
from bot.cli.tape import list_tapes
from bot.cli.tape_export import export_tape
from bot.core.errors import (
    InvalidEntry,
    SettingsError,
    TapeExists,
    TapeLocked,
    TapeNotFound,
)
from bot.tape.entries import ENTRY_KINDS, TapeEntry, message
from bot.tape.stores.folder import TapeFolder
from bot.transfer.export import export_file_name
from bot.transfer.file_storage import FileHomeStorage
from bot.transfer.restore import restore_export

TAPE = "telegram:42"

_texts = st.text(max_size=20) | st.sampled_from(["\ud800", "a\nb\r\u2028", "\x00\x18", "]:"])
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)
_entries = st.builds(
    TapeEntry,
    st.just(0),
    st.sampled_from(sorted(ENTRY_KINDS)),
    st.dictionaries(_texts, _json, max_size=3),
    st.dictionaries(_texts, _json, max_size=3),
)
_steps = st.lists(
    st.lists(_entries, min_size=1, max_size=4) | st.sampled_from(["archive", "reset"]), max_size=8
)


@given(_steps)
@hypothesis_settings(max_examples=examples(30))
def test_any_tape_comes_back_exactly_through_archives_and_gaps(steps):
    async def there_and_back() -> None:
        with tempfile.TemporaryDirectory() as folder:
            one, other = Path(folder) / "one", Path(folder) / "other"
            async with tapes(one) as store:
                await store.create_tape(TAPE, "a title")
                for step in steps:
                    if step == "archive":
                        await store.archive(TAPE)
                    elif step == "reset":
                        await store.reset(TAPE)
                    else:
                        await store.append_many(TAPE, step)
                lines = await export(store, TAPE, "jsonl")
                wanted = await store.read(TAPE)
                version = await store.version(TAPE)
            path = Path(folder) / "export.jsonl"
            path.write_bytes(lines)
            await restore(path, other)
            async with tapes(other) as store:
                assert await store.list_tapes() == [TAPE]
                assert await store.read(TAPE) == wanted
                assert [one async for one in store.read_back(TAPE)] == wanted[::-1]
                assert await store.get_title(TAPE) == "a title"
                assert await export(store, TAPE, "jsonl") == lines
                assert (await store.append(TAPE, message("user", "on"))).id == version + 1

    anyio.run(there_and_back)


async def restore(path: Path, home: Path) -> None:
    files = FileHomeStorage(home)
    with files.lock():
        await restore_export(path, files)


async def filled(home: Path, session: str = TAPE, count: int = 5) -> list[TapeEntry]:
    async with tapes(home) as store:
        await store.create_tape(session)
        await store.append_many(session, [message("user", f"text {i}") for i in range(count)])
        return await store.read(session)


def test_a_tape_is_exported_while_another_process_writes_it(tmp_path, capfdbinary):
    async def beside() -> None:
        async with tapes(tmp_path) as store:
            await store.create_tape(TAPE)
            await store.append(TAPE, message("user", "grüß Gott"))
            with pytest.raises(TapeLocked):
                async with tapes(tmp_path):
                    pass
            await anyio.to_thread.run_sync(export_tape, settings(tmp_path), TAPE)

    anyio.run(beside)
    lines = capfdbinary.readouterr().out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [1, 2]
    assert "grüß Gott".encode() in lines[1]


def test_all_sessions_go_into_a_folder_a_private_file_each_and_come_back(tmp_path, capsys):
    home, other, out = tmp_path / "one", tmp_path / "other", tmp_path / "out"
    names = ["telegram:42", "telegram:42:7", "discord:a/../b", "console:local"]
    wanted = {name: anyio.run(filled, home, name) for name in names}
    assert export_tape(settings(home), None, output=out) == 0
    assert {path.name for path in out.iterdir()} == {
        export_file_name(name, "jsonl") for name in names
    }
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in out.iterdir())
    assert import_jsonl(settings(other), out) == 0
    assert {name: anyio.run(read, other, name) for name in names} == wanted
    assert capsys.readouterr().out.count("imported\t") == len(names)


def test_all_sessions_into_nowhere_is_refused_with_what_to_do(tmp_path):
    anyio.run(filled, tmp_path)
    with pytest.raises(SettingsError, match="--output FOLDER"):
        export_tape(settings(tmp_path), None)
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(SettingsError, match="is a file"):
        export_tape(settings(tmp_path), None, output=file)
    assert file.read_text() == "mine"


def test_a_session_that_is_not_there_leaves_the_output_as_it_was(tmp_path):
    anyio.run(filled, tmp_path)
    out = tmp_path / "out.jsonl"
    out.write_text("yesterday's")
    with pytest.raises(TapeNotFound, match="telegram:43"):
        export_tape(settings(tmp_path), "telegram:43", output=out)
    assert out.read_text() == "yesterday's"
    assert list(tmp_path.glob("out*")) == [out]


def test_a_tape_that_is_there_is_never_written_over(tmp_path, capsys):
    wanted = anyio.run(filled, tmp_path)
    out = tmp_path / "out.jsonl"
    export_tape(settings(tmp_path), TAPE, output=out)
    assert import_jsonl(settings(tmp_path), out) == 1
    assert "there is already a tape telegram:42" in capsys.readouterr().err
    assert anyio.run(read, tmp_path, TAPE) == wanted
    folder = TapeFolder(tmp_path / "tapes", "")
    folder.live_path(TAPE).rename(tmp_path / "tapes" / (folder.live_path(TAPE).name + ".next"))
    with pytest.raises(TapeExists):
        anyio.run(restore, out, tmp_path)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda lines: [*lines[:2], b"{torn", *lines[2:]], "line 3: damaged"),
        (lambda lines: [*lines, lines[1]], "line 7: id 2 comes after 6"),
        (lambda lines: lines[1:], "line 1: no tape header"),
        (
            lambda lines: [lines[0].replace(b"telegram:42", b"../../x"), *lines[1:]],
            "no tape header",
        ),
        (lambda _: [b""], "line 1: no tape header"),
    ],
)
def test_what_is_no_whole_export_is_refused_with_its_line(tmp_path, damage, told):
    anyio.run(filled, tmp_path / "one")
    out = tmp_path / "out.jsonl"
    export_tape(settings(tmp_path / "one"), TAPE, output=out)
    out.write_bytes(b"\n".join(damage(out.read_bytes().splitlines())))
    other = tmp_path / "other"
    with pytest.raises(InvalidEntry, match=told):
        anyio.run(restore, out, other)
    assert list((other / "tapes").glob("*.jsonl*")) == []


def test_nothing_is_restored_beside_a_running_tapebot_nor_by_a_dry_run(tmp_path, capsys):
    anyio.run(filled, tmp_path / "one")
    out = tmp_path / "out.jsonl"
    export_tape(settings(tmp_path / "one"), TAPE, output=out)
    other = tmp_path / "other"
    assert import_jsonl(settings(other), out, dry_run=True) == 0
    assert "would import\ttelegram:42: 6 entries" in capsys.readouterr().out
    assert not (other / "tapes").exists()

    async def beside() -> None:
        async with tapes(other):
            with pytest.raises(TapeLocked, match="stop it"):
                await anyio.to_thread.run_sync(import_jsonl, settings(other), out)

    anyio.run(beside)


KILLED = """
import os, signal, sys
from pathlib import Path
import anyio
import bot.transfer.file_storage as module
from bot.transfer.file_storage import FileHomeStorage
from bot.transfer.restore import restore_export

wanted = int(sys.argv[3])
encode_line, written = module.encode_line, 0

def dying(line):
    global written
    written += 1
    if written == wanted:
        os.kill(os.getpid(), signal.SIGKILL)
    return encode_line(line)

module.encode_line = dying
home = module.FileHomeStorage(Path(sys.argv[2]))
with home.lock():
    anyio.run(restore_export, Path(sys.argv[1]), home)
"""


@pytest.mark.slow
def test_a_kill_in_the_middle_of_a_restore_leaves_no_tape_and_the_next_one_succeeds(tmp_path):
    wanted = anyio.run(filled, tmp_path / "one", TAPE, 2_500)
    out = tmp_path / "out.jsonl"
    export_tape(settings(tmp_path / "one"), TAPE, output=out)
    other = tmp_path / "other"
    for place in (1, 1_500, 2_501):
        command = [sys.executable, "-c", KILLED, str(out), str(other), str(place)]
        done = subprocess.run(command, check=False, timeout=30, env=dict(os.environ))
        assert done.returncode == -signal.SIGKILL
        with pytest.raises(TapeNotFound):
            anyio.run(read, other, TAPE)
    assert import_jsonl(settings(other), out) == 0
    assert anyio.run(read, other, TAPE) == wanted


@given(st.lists(st.text(min_size=1, max_size=200), min_size=2, max_size=2, unique=True))
def test_no_two_sessions_share_a_file_and_no_name_is_a_path(texts):
    one, other = (export_file_name(f"telegram:{text}", "jsonl") for text in texts)
    assert one != other
    assert "/" not in one
    assert len(one.encode()) < 255


MEASURED = """
import resource, sys
from pathlib import Path
from bot.cli.tape_export import export_tape
from bot.cli.imports import import_jsonl
from bot.runtime.settings import load_settings

home, out, other = map(Path, sys.argv[1:])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
export_tape(load_settings(home=home), "telegram:42", output=out)
export_tape(load_settings(home=home), "telegram:42", form="markdown", output=out.with_suffix(".md"))
import_jsonl(load_settings(home=other), out)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.night
@pytest.mark.slow
def test_a_long_tape_goes_out_and_in_without_being_held_in_memory(tmp_path):
    async def fill() -> None:
        async with tapes(tmp_path / "one") as store:
            await store.create_tape(TAPE)
            for _ in range(40):
                text = "word " * 200
                await store.append_many(TAPE, [message("user", text) for _ in range(2_500)])

    anyio.run(fill)
    paths = [str(tmp_path / name) for name in ("one", "out.jsonl", "other")]
    command = [sys.executable, "-c", MEASURED, *paths]
    done = subprocess.run(command, check=True, timeout=500, capture_output=True)
    size = (tmp_path / "out.jsonl").stat().st_size
    grown = int(done.stdout.split()[-1]) * 1024
    assert size > 100_000_000
    assert grown < 40_000_000


def test_what_is_no_file_costs_itself_alone(tmp_path, capsys):
    anyio.run(filled, tmp_path / "one")
    out = tmp_path / "out"
    export_tape(settings(tmp_path / "one"), None, output=out)
    (out / "a folder.jsonl").mkdir()
    (out / "a link.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(out / "a pipe.jsonl")
    assert import_jsonl(settings(tmp_path / "other"), out) == 1
    told = capsys.readouterr()
    assert "imported\ttelegram:42: 6 entries" in told.out
    assert told.err.count("is not a regular file") == 3


@pytest.mark.parametrize("name", ["telegram:\\ud800", "telegram:\\u001b[31m"])
def test_no_name_of_a_session_stops_an_import_or_a_listing(tmp_path, capsys, name):
    anyio.run(filled, tmp_path / "one")
    out = tmp_path / "out.jsonl"
    export_tape(settings(tmp_path / "one"), TAPE, output=out)
    bare = re.sub(rb',"chain":"[^"]+"', b"", out.read_bytes())
    out.write_bytes(bare.replace(b"telegram:42", name.encode()))
    other = settings(tmp_path / "other")
    refused = import_jsonl(other, out)
    list_tapes(other)
    told = capsys.readouterr()
    assert refused == ("ud800" in name)
    assert "\x1b" not in told.out + told.err


def test_a_pipe_is_written_to_and_a_link_is_followed(tmp_path):
    anyio.run(filled, tmp_path / "one")
    plain, pipe, link = (tmp_path / name for name in ("out.jsonl", "pipe", "link"))
    chosen = settings(tmp_path / "one")
    export_tape(chosen, TAPE, output=plain)
    os.mkfifo(pipe)
    read_end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        export_tape(chosen, TAPE, output=pipe)
        assert pipe.is_fifo()
        assert os.read(read_end, 65_536) == plain.read_bytes()
    finally:
        os.close(read_end)
    target = tmp_path / "target"
    target.write_text("yesterday's")
    link.symlink_to(target)
    export_tape(chosen, TAPE, output=link)
    assert link.is_symlink()
    assert target.read_bytes() == plain.read_bytes()


def test_where_tapes_are_in_no_files_none_are_touched(tmp_path):
    anyio.run(filled, tmp_path / "one")
    out = tmp_path / "out.jsonl"
    export_tape(settings(tmp_path / "one"), TAPE, output=out)
    with pytest.raises(TapeNotFound):
        export_tape(settings(tmp_path / "one", tape_store="memory"), TAPE, output=out)
    elsewhere = settings(tmp_path / "other", tape_store="memory")
    with pytest.raises(SettingsError, match="TAPEBOT_TAPE_STORE"):
        import_jsonl(elsewhere, out)
    with pytest.raises(SettingsError, match="TAPEBOT_TAPE_STORE"):
        import_nanobot(elsewhere, NANOBOT)
    assert not (tmp_path / "other" / "tapes").exists()
