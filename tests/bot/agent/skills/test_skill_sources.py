"""What a hostile folder or repository may do when a skill is fetched: be refused, with the reason."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from skill_sources import BREW, added, commit, git, write_files
from waiting import until

from bot.agent.skills.skill_package import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply


@pytest.fixture
async def host(tmp_path):
    async with session_host(
        tmp_path / "home", ScriptedModel(lambda _: text_reply("ok"))
    ) as running:
        yield running


def nothing_is_left(tmp_path):
    kept = [path for path in (tmp_path / "home" / "blobs").rglob("*") if path.is_file()]
    return not kept and not (tmp_path / "home" / "incoming-skills").exists()


async def both(host, tmp_path, files, links=()):
    """Return the refusals of a skill from a folder and from a repository with the same files."""
    source = write_files(tmp_path / "source", {"SKILL.md": BREW} | files)
    for name, target in links:
        (source / name).symlink_to(target)
    from_folder = await host.channel.ask(f"/skills add {source}")
    from_git = await host.channel.ask(f"/skills add {commit(source)}")
    return from_folder, from_git


async def test_a_folder_and_its_repository_have_the_same_digest(host, tmp_path):
    files = {"SKILL.md": BREW, "references/a.md": "a", "assets/b.bin": bytes(range(256))}
    source = write_files(tmp_path / "source", files)
    digest = await added(host, source)
    assert await added(host, commit(source)) == digest
    told = await host.channel.ask("/skills brew")
    assert f"commit `{git(source, 'rev-parse', 'HEAD')[:12]}`" in told
    assert not (tmp_path / "home" / "incoming-skills").exists()


@pytest.mark.parametrize("target", ["/etc/passwd", "SKILL.md", "../../secrets"])
async def test_a_symbolic_link_is_refused(host, tmp_path, target):
    for told in await both(host, tmp_path, {}, [("link", target)]):
        assert "Not done: `link` is a symbolic link." in told
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({f"{number}.md": "x" for number in range(MAX_FILES)}, f"more than {MAX_FILES} files"),
        ({"a.md": "x" * (MAX_FILE_BYTES + 1)}, "has 1,000,001 bytes; at most 1,000,000"),
        (
            {f"{number}.md": "x" * (MAX_BYTES // 5) for number in range(5)},
            "more than 4,000,000 bytes together",
        ),
        ({"a\x1b[31m\n.md": "x"}, "has characters that are not allowed"),
        ({"a\u202egpj.md": "x"}, "has characters that are not allowed"),
        ({"/".join("abcdefghi"): "x"}, "is too long"),
    ],
    ids=["files", "file", "bytes", "control", "direction", "deep"],
)
async def test_a_skill_beyond_the_bounds_is_refused(host, tmp_path, files, why):
    for told in await both(host, tmp_path, files):
        assert told.startswith("Not done: ")
        assert why in told
        assert "\x1b" not in told
    assert nothing_is_left(tmp_path)


async def test_a_submodule_is_refused_and_not_fetched(host, tmp_path):
    inner = commit(write_files(tmp_path / "inner", {"a.md": "x"}))
    source = write_files(tmp_path / "source", {"SKILL.md": BREW})
    commit(source)
    git(source, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", inner, "inner")
    told = await host.channel.ask(f"/skills add {commit(source)}")
    assert "`inner` is a submodule" in told


async def test_hooks_filters_and_configuration_of_a_repository_run_nothing(
    host, tmp_path, monkeypatch
):
    mark = tmp_path / "ran"
    source = write_files(tmp_path / "source", {"SKILL.md": BREW, ".gitattributes": "* filter=evil"})
    address = commit(source)
    for hook in ("post-checkout", "post-merge", "reference-transaction"):
        path = source / ".git" / "hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch {mark}\n")
        path.chmod(0o755)
    git(source, "config", "filter.evil.smudge", f"touch {mark}")
    git(source, "config", "uploadpack.packObjectsHook", f"touch {mark}; exec git")
    # What a person configured for themselves is not used either.
    person = tmp_path / "gitconfig"
    person.write_text(f'[url "ext::sh -c touch% {mark}"]\n\tinsteadOf = file://\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(person))
    monkeypatch.setenv("GIT_SSH_COMMAND", f"touch {mark}")
    assert "The skill `brew`" in await host.channel.ask(f"/skills add {address}")
    assert not mark.exists()


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c touch% ran",
        "--upload-pack=touch",
        "-cfile.allow=always",
        "http://example.org/a.git",
        "git://example.org/a.git",
        "https://ada:secret@example.org/a.git",
        "file::/etc",
        "https://example.org/\n--upload-pack=x",
        "relative/folder",
        "a:-oProxyCommand=x" * 40,
    ],
)
async def test_other_addresses_are_refused_before_git_sees_them(host, tmp_path, address):
    told = await host.channel.ask(f"/skills add {address}")
    assert told.startswith(("Not done:", "For example:"))
    assert "secret" not in told
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("name: brew", "the description is missing"),
        ("description: x", "the name is missing"),
        ("name: Brew Tea\ndescription: x", "is not made of lower-case letters"),
        ("name: brew--tea\ndescription: x", "is not made of lower-case letters"),
        ("name: -brew\ndescription: x", "is not made of lower-case letters"),
        (f"name: {'b' * 65}\ndescription: x", "the name has 65 characters; at most 64"),
        (f"name: b\ndescription: {'x' * 1025}", "the description has 1,025 characters"),
        (f"name: b\ndescription: x\ncompatibility: {'x' * 501}", "the compatibility has 501"),
        ("name: b\ndescription: [x]", "the description is not a text"),
        ("name: b\ndescription: x\nmetadata: {a: [b]}", "metadata maps something other"),
        ("name: b\ndescription: x\nallowed-tools: {a: b}", "allowed-tools is not a list"),
        ("name: [b\ndescription: x", "is not YAML in line"),
        ("name: b\ndescription: &a x\nmetadata: {a: *a}", "has anchors or aliases"),
        (f"name: b\ndescription: x\nmetadata: {'[' * 5_000}", "nested too deeply"),
        ("name: b\ndescription: x\n" + "a: b\n" * 5_000, "does not end with a line `---`"),
        ("name: add\ndescription: x", "the name `add` is a word of `/skills`"),
        ("- a\n- b", "has no fields"),
        ('name: b\ndescription: "\\UFFFFFFFF"', "is not YAML"),
    ],
)
async def test_a_header_that_breaks_the_standard_is_refused_with_the_reason(
    host, tmp_path, header, why
):
    source = write_files(tmp_path / "source", {"SKILL.md": f"---\n{header}\n---\nText."})
    told = await host.channel.ask(f"/skills add {source}")
    assert told.startswith("Not done: ")
    assert why in told
    assert nothing_is_left(tmp_path)


async def test_a_repository_larger_than_the_bound_is_not_fetched(host, tmp_path, monkeypatch):
    source = {"skills/brew/SKILL.md": BREW, "film.bin": os.urandom(1_000_000)}
    address = commit(write_files(tmp_path / "source", source))
    monkeypatch.setattr("bot.agent.skills.git_repository.MAX_REPOSITORY_BYTES", 300_000)
    assert "git could not read it: " in await host.channel.ask(f"/skills add {address}")
    assert nothing_is_left(tmp_path)
    monkeypatch.undo()
    assert "The skill `brew`" in await host.channel.ask(f"/skills add {address}")


@pytest.fixture
def slow_git(tmp_path, monkeypatch):
    """The program named git is one that starts another and waits for ever; yields what names both."""
    pids = tmp_path / "pids"
    slow = f"#!{sys.executable}\nimport os, time\nos.fork()\n"
    slow += f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\ntime.sleep(600)\n"
    programs = write_files(tmp_path / "programs", {"git": slow})
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return pids


async def test_a_git_that_takes_too_long_is_given_up(host, tmp_path, slow_git, monkeypatch):
    monkeypatch.setattr("bot.agent.skills.skill_sources.FETCH_SECONDS", 0.5)
    told = await host.channel.ask("/skills add file:///none")
    assert "git did not finish within 0.5 seconds" in told
    assert nothing_is_left(tmp_path)


async def test_a_git_that_is_given_up_ends_with_all_that_it_started(tmp_path, slow_git):
    def started():
        return slow_git.read_text().split() if slow_git.exists() else []

    async with session_host(tmp_path / "home", ScriptedModel([])) as host:
        await host.channel.send("/skills add file:///none")
        await until(lambda: len(started()) == 2)
    for pid in started():
        await until(lambda pid=pid: not is_running(pid))
    assert nothing_is_left(tmp_path)


def is_running(pid: str) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
