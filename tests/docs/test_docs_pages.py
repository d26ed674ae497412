"""Every command in the docs works as the page says, and the page shows what comes out."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from page_player import PLAYED, ROOT, Block, Player, blocks, rewritten, same

_OF_THAT_PART = "the tests of that part run its commands"
TESTED_ELSEWHERE = {
    "docs/memory-bus-example.md": "tests/e2e/test_worked_example.py plays it on two platforms",
    "docs/evals.md": "each takes minutes; tests/evals runs them on samples",
    "docs/scale.md": "benchmarks; tests/test_bench_smoke.py runs them small",
    "docs/plugins.md": "tests/e2e/test_plugin_example.py installs, runs and tests the example",
    "docs/plugin-example/README.md": "the same",
    "deploy/RUNBOOK.md": "tests/test_deploy*.py and tests/e2e/test_postgres_*.py, test_runbook_sql.py run its commands",
    "CONTRIBUTING.md": "the pieces of code are of the program's own tree",
    "docs/first-day.md": "tests/e2e/test_first_day.py plays it",
    "docs/install.md": _OF_THAT_PART,
    "docs/setup.md": _OF_THAT_PART,
    "docs/container.md": _OF_THAT_PART,
    "docs/mcp-server.md": _OF_THAT_PART,
    "docs/languages.md": _OF_THAT_PART,
}
_MAKES = "make run      # talk to it: no key, no account, nothing you say leaves this machine"
NOT_RUN = {
    ("README.md", _MAKES): "CI runs make",
    ("docs/start.md", _MAKES): "CI runs make",
    ("docs/backup.md", ""): "asks at a terminal; docs/howto/backup.md and restore.md run both",
    ("docs/budgets.md", "/budget"): "sums of a model with prices; docs/howto/budget.md runs it",
    ("docs/howto/erase-person.md", "tapebot memory erase telegram:42"): "asks at a terminal",
    ("docs/howto/postgres.md", "tapebot db create"): "a database",
    ("docs/howto/service.md", "tapebot service install"): "root has none",
    ("docs/mcp.md", ""): "servers of others; tests/bot/mcp_client runs the commands",
    ("docs/performance.md", ""): "minutes; tests/test_bench_smoke.py measures each",
    ("docs/postgres.md", ""): "a database; tests/bot/cli/test_cli_database.py",
    ("docs/skills.md", ""): "a repository elsewhere; docs/howto/skills.md takes a folder",
    ("docs/tape-server.md", ""): "installs, and a server that stays; tests/bot/tape/server",
    ("docs/tools.md", ""): "excerpts; tests/e2e/test_plugin_example.py runs a whole tool",
    (
        "docs/web.md",
        "",
    ): "tests/e2e/test_web_docs.py runs the programs, docs/howto/site.md the link",
}
"""Commands that need the outside world, by the page and the first of their block, and why they are not run."""


QUICK = ("README.md", "docs/howto/skills.md", "docs/howto/telegram.md", "docs/howto/upgrade.md")


def pages() -> list[str]:
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").glob("*.md")]
    names = sorted(str(one.relative_to(ROOT)) for one in found)
    return [one for one in names if one not in TESTED_ELSEWHERE]


def is_run(page: str, block: Block) -> bool:
    first = next(iter(block.commands), "") if block.kind in PLAYED else ""
    return (page, first) not in NOT_RUN and (page, "") not in NOT_RUN


def commands(page: str) -> bool:
    text = (ROOT / page).read_text(encoding="utf-8")
    return any(one.kind in PLAYED and is_run(page, one) for one in blocks(text))


@pytest.mark.parametrize(
    "page",
    [
        # A few of them at each run, all of them among the long proofs.
        pytest.param(one, marks=[] if one in QUICK else [pytest.mark.slow])
        for one in pages()
        if commands(one)
    ],
)
async def test_the_page_shows_what_comes_out(page: str, tmp_path: Path) -> None:
    """Where the program is meant to say something else, ``WRITE_DOCS=1`` writes the page anew."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    made, end = [], 0
    async with AsyncExitStack() as life:
        ada = Player(tmp_path, life)
        for block in blocks(text):
            if not is_run(page, block):
                continue
            if os.environ.get("WRITE_DOCS"):
                new = await rewritten(ada, block) if block.kind in ("chat", "console") else None
                if new is None:
                    await ada.play(block)
                else:
                    made += [text[end : block.start], new]
                    end = block.end
                continue
            for done, shown, said in await ada.play(block):
                assert same(shown, said), "\n".join([done, "", *shown, "", "said:", *said])
    if made:
        path.write_text("".join([*made, text[end:]]), encoding="utf-8")
