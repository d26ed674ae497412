"""The workspace's files reach the prompt, bounded; a broken one costs itself alone."""

from __future__ import annotations

from bot.agent.workspace_files import MAX_BOOTSTRAP, WorkspaceFiles
from bot.testing.manual_clock import ManualClock

SKILL = "---\nname: brew\ndescription: >\n  How to\n  brew tea.\n---\nBoil water first.\n"


def _skill(root, name, text):
    folder = root / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text, encoding="utf-8")


async def test_bootstrap_files_come_in_a_fixed_order_and_are_cut(tmp_path):
    (tmp_path / "USER.md").write_text("I am Ada.", encoding="utf-8")
    (tmp_path / "AGENTS.md").write_text("x" * (MAX_BOOTSTRAP + 5), encoding="utf-8")
    text = await WorkspaceFiles(tmp_path, ManualClock()).read()
    assert [name for name, _ in text.files] == ["AGENTS.md", "USER.md"]
    assert text.files[0][1].startswith("x" * MAX_BOOTSTRAP + "\n… (cut at")


async def test_skills_are_listed_by_name(tmp_path):
    _skill(tmp_path, "brew", SKILL)
    workspace = WorkspaceFiles(tmp_path, ManualClock())
    [skill] = (await workspace.read()).skills
    assert (skill.name, skill.description) == ("brew", "How to brew tea.")


async def test_a_broken_file_is_left_out_and_the_others_stay(tmp_path):
    _skill(tmp_path, "brew", SKILL)
    _skill(tmp_path, "bare", "no front matter")
    _skill(tmp_path, "date", "---\nname: a\ndescription: b\ncreated: 2026-13-45\n---\n")
    (tmp_path / "skills" / "folder" / "SKILL.md").mkdir(parents=True)
    (tmp_path / "AGENTS.md").mkdir()
    (tmp_path / "SOUL.md").write_bytes(b"calm \xff")
    text = await WorkspaceFiles(tmp_path, ManualClock()).read()
    assert [skill.name for skill in text.skills] == ["brew"]
    assert dict(text.broken) == {
        "bare": "SKILL.md does not begin with a line `---` and a header of name and description",
        "date": "SKILL.md: the name `a` is not that of its folder, `date`",
        "folder": "`SKILL.md` is no file",
    }
    assert [name for name, _ in text.files] == ["SOUL.md"]


async def test_a_change_is_seen_after_half_a_minute_not_at_each_turn(tmp_path):
    clock = ManualClock()
    workspace = WorkspaceFiles(tmp_path, clock)
    assert (await workspace.read()).files == ()
    (tmp_path / "SOUL.md").write_text("calm", encoding="utf-8")
    assert (await workspace.read()).files == ()
    clock.advance(31)
    assert (await workspace.read()).files == (("SOUL.md", "calm"),)


async def test_no_workspace_is_an_empty_one(tmp_path):
    text = await WorkspaceFiles(tmp_path / "none", ManualClock()).read()
    assert text.files == ()
    assert text.skills == ()
