"""A backup holds a home as of one moment, opens only with its key, and is restored whole or not at all."""

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
import tarfile
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from unittest.mock import patch

import anyio
import anyio.to_thread
import pexpect
import pyrage
import pytest

from bot.agent.notebook import NotebookModel
from bot.cli.main import main
from bot.core.errors import BackupFailed
from bot.tape.entries import message
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder import TapeFolder
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.transfer.backup import (
    ARCHIVE,
    BackupResult,
    create_backup,
    newest_backup,
    open_key,
    restore_backup,
)
from bot.transfer.backup_key import (
    BackupKey,
    parse_identity,
    passphrase_key,
    recipient_key,
    signer_of,
    signing_key,
)
from bot.transfer.erased_list import ErasedList
from bot.transfer.home_snapshot import take_snapshot

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 11, 26, 3, 30, tzinfo=UTC)
WORDS = "correct horse battery"
OWNER = pyrage.x25519.Identity.generate()


def environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "TAPEBOT_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "TAPEBOT_TIMEZONE": "UTC",
    }


async def ask(home: Path, *texts: str) -> str:
    """Say something to the bot of a home; return its last answer."""
    async with session_host(home, NotebookModel()) as host:
        for text in texts:
            # A channel numbers its messages from 1 again, so these say ids of their own.
            sent = await host.channel.send(text, message_id=text)
            answer = await host.channel.wait_for_answer(sent)
    return answer


def talk(home: Path, *texts: str) -> str:
    return anyio.run(ask, home, *texts)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A home with a talk, a file that somebody sent, and what a backup leaves out."""
    home = tmp_path_factory.mktemp("origin") / "home"
    talk(home, "I live in Oslo.", "/new", "My cat is called Pia.")
    name = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"  # SHA-256 of "foo"
    (home / "blobs" / name[:2]).mkdir(parents=True)
    (home / "blobs" / name[:2] / name).write_bytes(b"foo")
    (home / "blobs" / "incoming").mkdir(exist_ok=True)
    (home / "blobs" / "incoming" / "blob-torn").write_bytes(b"half")
    (home / "workspace").mkdir(exist_ok=True)
    (home / "workspace" / "poetry.lock").write_text("the owner's own")
    (home / "vectors").mkdir(exist_ok=True)
    (home / "vectors" / "of-old.bin").write_bytes(b"1")
    return home


@pytest.fixture
def backup(home, tmp_path) -> Path:
    return create_backup(home, tmp_path / "backups", owners_key(), NOW).path


def owners_key() -> BackupKey:
    return recipient_key([str(OWNER.to_public())])


def restored(backup: Path, home: Path) -> Path:
    return restore_any(backup, home, OWNER).path


def restore_any(backup: Path, home: Path, identity: pyrage.x25519.Identity) -> BackupResult:
    return restore_backup(backup, home, identity, signer=None, confirm=lambda *_: True)


def contents(backup: Path) -> dict[str, bytes]:
    """Return the files in an archive, by name and in order."""
    plain = pyrage.decrypt((backup / ARCHIVE).read_bytes(), [OWNER])
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive}  # type: ignore[union-attr]


def forge(backup: Path, files: Mapping[str, bytes]) -> Path:
    """Write an archive that anybody can make for the owner; return its folder."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    backup.mkdir(exist_ok=True)
    (backup / ARCHIVE).write_bytes(pyrage.encrypt(plain.getvalue(), [OWNER.to_public()]))
    return backup


def tree(home: Path) -> dict[str, bytes]:
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def test_a_restored_home_remembers_and_answers_as_before(backup, tmp_path):
    again = restored(backup, tmp_path / "again")
    assert "Oslo" in talk(again, "Where do I live?")
    assert "Pia" in talk(again, "What is my cat called?")


def test_it_holds_everything_but_what_is_computed_again(home, tmp_path):
    made, again = create_backup(home, tmp_path / "backups", owners_key(), NOW), tmp_path / "again"
    restore_backup(made.path, again, OWNER, signer=made.read.signer, confirm=lambda *_: False)
    saved = tree(again)
    left_out = set(tree(home)) - set(saved)
    assert saved == {name: data for name, data in tree(home).items() if name not in left_out}
    assert "workspace/poetry.lock" in saved
    assert any(name.startswith("blobs/2c/") for name in saved)
    kinds = (".lock", ".owner", ".index.db", ".index.db.sum", "-wal", "-shm", ".log")
    assert all(
        name.endswith(kinds) or name.startswith(("vectors/", "blobs/incoming/"))
        for name in left_out
    )


def test_nobody_reads_it_without_the_key(backup):
    data = b"".join(path.read_bytes() for path in backup.iterdir())
    assert b"Oslo" not in data
    stranger = pyrage.x25519.Identity.generate()
    with pytest.raises(BackupFailed, match="key does not fit"):
        restore_any(backup, backup.parent / "again", stranger)
    assert not (backup.parent / "again").exists()
    assert [path.stat().st_mode & 0o077 for path in backup.iterdir()] == [0] * 2


@pytest.mark.slow
def test_a_passphrase_opens_it_and_so_do_age_and_tar(home, tmp_path):
    backup = create_backup(home, tmp_path / "backups", passphrase_key(WORDS), NOW).path
    with pytest.raises(BackupFailed, match="passphrase is wrong"):
        open_key(backup, lambda: "a guess", None)
    identity, signer = open_key(backup, lambda: WORDS, None)
    again = restore_backup(
        backup, tmp_path / "again", identity, signer=signer, confirm=lambda *_: False
    )
    assert again.tapes.tapes == 2
    # As the README beside it says.
    text = pyrage.passphrase.decrypt((backup / "key.age").read_bytes(), WORDS).decode()
    plain = pyrage.decrypt((backup / ARCHIVE).read_bytes(), [parse_identity(text)])
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        assert any(name.startswith("tapes/") for name in archive.getnames())


@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_a_damaged_backup_is_refused_and_the_home_stays_as_it_was(backup, tmp_path, damage):
    path = backup / ARCHIVE
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-20] ^= 1
    path.write_bytes(data[: -20 if damage == "cut" else None])
    (tmp_path / "again").mkdir()
    with pytest.raises(BackupFailed):
        restored(backup, tmp_path / "again")
    assert list((tmp_path / "again").iterdir()) == []


def test_a_home_with_anything_in_it_is_not_overwritten(home, backup):
    before = tree(home)
    with pytest.raises(BackupFailed, match="not empty"):
        restored(backup, home)
    assert tree(home) == before


@pytest.mark.parametrize(
    "name", ["../escaped", "/etc/escaped", "tapes/../../escaped", "./Sandbox/escaped"]
)
def test_an_archive_with_what_no_backup_holds_is_refused(tmp_path, name):
    forged = forge(tmp_path / "forged", {name: b""})
    with pytest.raises(BackupFailed, match="no path below"):
        restore_any(forged, tmp_path / "deep" / "again", OWNER)
    assert not list(tmp_path.rglob("escaped"))


def test_old_backups_go_and_torn_ones_never_count(home, tmp_path):
    to = tmp_path / "backups"
    (to / "tapebot-20200101T000000Z.part").mkdir(parents=True)
    (to / "holiday pictures").mkdir()
    (to / "tapebot-20261399T000000Z").mkdir()
    for day in range(4):
        create_backup(home, to, owners_key(), NOW + timedelta(days=day), keep=2)
    assert sorted(path.name for path in to.iterdir() if path.is_dir()) == [
        "holiday pictures",
        "tapebot-20261128T033000Z",
        "tapebot-20261129T033000Z",
        "tapebot-20261399T000000Z",
    ]


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
import bot.transfer.backup as backup
from bot.transfer.backup_key import recipient_key

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(backup, sys.argv[3], die)
backup.create_backup(
    Path(sys.argv[1]), Path(sys.argv[2]), recipient_key([sys.argv[4]]),
    datetime(2026, 11, 25, 3, 30, tzinfo=UTC),
)
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["write_archive", "verify_folder", "sync_directory"])
def test_a_kill_leaves_no_half_backup_and_the_next_one_is_whole(home, tmp_path, step):
    own = tmp_path / "home"
    shutil.copytree(home, own)
    to = tmp_path / "backups"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(own), str(to), step, str(OWNER.to_public())],
        env=environment(own),
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert newest_backup(to) is None
    made = create_backup(own, to, owners_key(), NOW, keep=1)
    assert newest_backup(to) == made.path
    assert not list(to.glob("*.part"))
    assert not (own / ".backup-check").exists()
    assert "Oslo" in talk(restored(made.path, tmp_path / "again"), "Where do I live?")


async def test_a_backup_of_a_running_bot_is_a_state_that_it_had(tmp_path):
    home, saved = tmp_path / "home", []
    async with session_host(home, NotebookModel()) as host:
        for number in range(4):
            await host.channel.ask(f"My box {number} is in room {number + 100}.")
            if number % 2:
                # The next message is on its way while the home is read.
                await host.channel.send("Remember this talk.")
                day = NOW + timedelta(days=number)
                make = partial(create_backup, home, tmp_path / "backups", owners_key(), day)
                saved.append(await anyio.to_thread.run_sync(make))
    for number, made in zip((1, 3), saved, strict=True):
        assert not made.tapes.problems
        again = restored(made.path, tmp_path / f"again-{number}")
        answer = await ask(again, f"Which room is my box {number} in?")
        assert f"room {number + 100}" in answer


FORGED = """[mcp.helper]
command = "touch"
args = ["escaped"]
\x1b[2K"""


@pytest.fixture(scope="module")
def forgery(home, tmp_path_factory) -> Path:
    """A backup of another's home, for whoever's key everybody knows."""
    place = tmp_path_factory.mktemp("forged")
    shutil.copytree(home, place / "home", ignore=shutil.ignore_patterns("backup-signing.key"))
    (place / "home" / "tapebot.toml").write_text(FORGED)
    (place / "home" / ".env").write_text("TAPEBOT_SEARCH_URL=http://evil.example\n")
    return create_backup(place / "home", place / "backups", owners_key(), NOW).path


def restore_command(
    backup: Path, home: Path, tmp_path: Path, *more: str
) -> subprocess.CompletedProcess[str]:
    key = tmp_path / "key.txt"
    key.write_text(f"{OWNER}\n")
    command = ["restore", str(backup), "--identity", str(key), *more]
    out, err = io.StringIO(), io.StringIO()
    with patch.dict(os.environ, environment(home)), redirect_stdout(out), redirect_stderr(err):
        code = main(command)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def test_what_another_home_made_is_shown_and_not_restored_unasked(home, backup, forgery, tmp_path):
    done = restore_command(forgery, tmp_path / "again", tmp_path)
    assert done.returncode != 0
    for line in (*FORGED.splitlines()[:3], "TAPEBOT_SEARCH_URL=http://evil.example"):
        assert f"  {line}\n" in done.stdout
    assert "\x1b" not in done.stdout
    assert "--signed-by ed25519:" in done.stderr
    assert not (tmp_path / "again").exists()
    assert not (tmp_path / "again.restoring").exists()


def test_a_signer_whom_the_owner_names_is_believed_and_no_other(backup, forgery, tmp_path):
    signer = re.search(r"ed25519:\S+", restore_command(backup, tmp_path / "a", tmp_path).stdout)
    assert signer is not None
    named = ("--signed-by", signer.group().rstrip("."))
    assert restore_command(forgery, tmp_path / "again", tmp_path, *named).returncode != 0
    assert not (tmp_path / "again").exists()
    done = restore_command(backup, tmp_path / "again", tmp_path, *named)
    assert (done.returncode, done.stderr) == (0, "")
    # The restored home signs as before.
    again = create_backup(tmp_path / "again", tmp_path / "more", owners_key(), NOW)
    assert again.read.signer == named[1]


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["y", "n"])
def test_at_a_terminal_the_owner_decides_about_anothers_backup(forgery, tmp_path, answer):
    (tmp_path / "key.txt").write_text(f"{OWNER}\n")
    home = tmp_path / "again"
    command = ["-m", "bot", "restore", str(forgery), "--identity", str(tmp_path / "key.txt")]
    child = pexpect.spawn(
        sys.executable, command, env=environment(home), cwd=str(tmp_path), timeout=60
    )
    child.expect_exact('command = "touch"')
    child.expect_exact("[y/N]")
    assert not home.exists()
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert (child.exitstatus == 0) == home.exists() == (answer == "y")
    # Whoever made it may sign with its key: the home gets another.
    assert not (home / "backup-signing.key").exists()


@pytest.mark.parametrize("cut", ["unsigned", "changed", "swapped"])
def test_an_archive_whose_list_was_changed_is_refused(backup, tmp_path, cut):
    """Who can encrypt for the owner, and knows what is in a backup, cannot change what it says."""
    files = contents(backup)
    if cut == "unsigned":
        del files["backup.json.sig"]
    if cut == "changed":
        files["backup.json"] = files["backup.json"].replace(b'"taken": "2026', b'"taken": "2027')
    if cut == "swapped":
        files |= {name: files[name] + b"\n" for name in files if name.startswith("tapes/")}
    forge(backup, files)
    done = restore_command(backup, tmp_path / "again", tmp_path)
    assert done.returncode != 0
    assert ("differs from what was saved" if cut == "swapped" else "is not signed") in done.stderr


@pytest.mark.parametrize(
    "changed",
    [
        lambda told: {**told, "signer": f"{told['signer']} is yours\x1b[8m"},
        lambda told: {**told, "files": [*told["files"]]},
        lambda told: {**told, "files": {name: [1] for name in told["files"]}},
    ],
)
def test_an_odd_list_of_another_home_is_refused_before_it_is_shown(forgery, tmp_path, changed):
    key, files = signing_key(forgery.parents[1] / "home"), contents(forgery)
    manifest = json.dumps(changed(json.loads(files["backup.json"]))).encode()
    files |= {"backup.json": manifest, "backup.json.sig": key.sign(manifest)}
    other = forge(tmp_path / "other", files)
    done = restore_command(other, tmp_path / "again", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tapebot: ")


def test_a_name_that_is_no_text_and_a_damaged_list_stop_no_backup(tmp_path):
    home, backups = tmp_path / "home", tmp_path / "backups"
    (home / "tapes").mkdir(parents=True)
    (home / "workspace").mkdir()
    name = os.fsdecode(b"caf\xe9.txt")
    (home / "workspace" / name).write_text("mine")
    (home / "erased.jsonl").write_bytes(b"\xff\xfe\n")
    backup = create_backup(home, backups, owners_key(), NOW).path
    assert (restored(backup, tmp_path / "again") / "workspace" / name).read_text() == "mine"


def test_a_linked_folder_of_the_home_is_saved_and_links_below_are_not(tmp_path):
    home, disk = tmp_path / "home", tmp_path / "disk"
    (home / "tapes").mkdir(parents=True)
    (disk / "notes").mkdir(parents=True)
    (disk / "notes" / "boat.md").write_text("Nora")
    (disk / "notes" / "around").symlink_to(disk)
    (home / "workspace").symlink_to(disk)
    backup = create_backup(home, tmp_path / "backups", owners_key(), NOW).path
    assert set(tree(restored(backup, tmp_path / "again"))) == {"workspace/notes/boat.md"}


def test_a_folder_that_cannot_be_read_is_not_left_out_silently(tmp_path):
    (tmp_path / "tapes").mkdir()
    scan = os.scandir

    def refusing(path):
        if Path(path).name == "tapes":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    with patch("os.scandir", refusing), pytest.raises(PermissionError):
        take_snapshot(tmp_path)


def say(home: Path, *lines: str) -> None:
    """Say lines to the program at its console."""
    done = subprocess.run(
        [sys.executable, "-m", "bot"],
        input="".join(f"{line}\n" for line in lines),
        env={**environment(home), "TAPEBOT_WEB_LISTEN": "off"},
        cwd=home.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def held(home: Path, word: str) -> list[str]:
    """Return the files with a word, packed ones unpacked."""
    return [
        name
        for name, data in tree(home).items()
        if word.encode() in (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    ]


@pytest.mark.slow
def test_what_was_erased_after_a_backup_is_erased_again_when_it_is_restored(tmp_path):
    home, backups = tmp_path / "home", tmp_path / "backups"
    say(home, "My cat is called Zqxmiau.", "/memory add I live in Wvutown", "/memory add Tea.")
    say(home, "Is Zqxmiau a good name?", "/memory why 1", "/new", "It rains today.")
    backup = create_backup(home, backups, owners_key(), NOW).path
    say(home, "/memory forget Zqxmiau", "yes", "/memory forget 1", "yes")
    create_backup(home, backups, owners_key(), NOW + timedelta(days=1))
    listed = (backups / "erased.jsonl").read_text()
    assert not re.search("zqxmiau|wvutown|console", listed, re.IGNORECASE)

    again = tmp_path / "again"
    signer = create_backup(home, backups, owners_key(), NOW + timedelta(days=2)).read.signer
    done = restore_command(backup, again, tmp_path, "--signed-by", signer)
    assert re.search(r"erased\t\d+ entries", done.stdout), done
    assert [held(again, word) for word in ("Zqxmiau", "Wvutown")] == [[], []]
    assert held(again, "Tea.")
    assert held(again, "It rains today.")
    say(again, "/memory", "What is new?")
    assert [held(again, word) for word in ("Zqxmiau", "Wvutown")] == [[], []]

    # What nobody of this home has signed counts for nothing.
    (backups / "erased.jsonl").write_text(listed.replace("ids", "Ids"))
    other = tmp_path / "other"
    restore_command(backup, other, tmp_path, "--signed-by", signer)
    assert held(other, "Zqxmiau")


async def test_what_one_workspace_erased_is_erased_again_there_and_in_no_other(tmp_path):
    home, backups, clock = tmp_path / "home", tmp_path / "backups", ManualClock()
    for workspace in ("", "/srv/notes"):
        store = FileTapeStore(home / "tapes", workspace=workspace, clock=clock)
        await store.create_tape("console:local")
        await store.append("console:local", message("user", "My cat is called Zqxmiau."))
        await store.close()
    spool = home / "channels" / "telegram" / "spool"
    spool.mkdir(parents=True)
    (spool / "7.json.damaged").write_text("My cat is called Zqxmiau.")
    make = partial(create_backup, home, backups, owners_key())
    backup = (await anyio.to_thread.run_sync(make, NOW)).path
    ErasedList(home, None, clock, "/srv/notes").note("console:local", ids=[2])
    await anyio.to_thread.run_sync(make, NOW + timedelta(days=1))
    signer, again = signer_of(signing_key(home)), tmp_path / "again"
    restore = partial(restore_backup, signer=signer, confirm=lambda *_: False)
    done = await anyio.to_thread.run_sync(restore, backup, again, OWNER)
    assert (done.erased, done.tapes.tapes) == (1, 2)
    (kept,) = held(again, "Zqxmiau")
    assert kept == f"tapes/{TapeFolder(home, '').stem('console:local')}.jsonl"
