"""A tape goes out as lines and comes back as it was."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio
import pytest
from exchange_files import export, read, settings, tapes
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sampling import examples

from bot.cli.imports import import_jsonl
from bot.cli.tape_export import export_tape
from bot.core.errors import InvalidEntry, TapeLocked
from bot.tape.entries import ENTRY_KINDS, TapeEntry, message
from bot.transfer.exported_tape import export_file_name, restore_export
from bot.transfer.file_home import FileHome

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
@hypothesis_settings(max_examples=examples(12))
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
    files = FileHome(home)
    with files.lock():
        await restore_export(path, files)


async def filled(home: Path, session: str = TAPE, count: int = 5) -> list[TapeEntry]:
    async with tapes(home) as store:
        await store.create_tape(session)
        await store.append_many(session, [message("user", f"text {i}") for i in range(count)])
        return await store.read(session)


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


def test_a_tape_that_is_there_is_never_written_over(tmp_path, capsys):
    wanted = anyio.run(filled, tmp_path)
    out = tmp_path / "out.jsonl"
    export_tape(settings(tmp_path), TAPE, output=out)
    assert import_jsonl(settings(tmp_path), out) == 1
    assert "there is already a tape telegram:42" in capsys.readouterr().err
    assert anyio.run(read, tmp_path, TAPE) == wanted


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
