"""An installed skill is there for every process that shares the database, and while its storage is there."""

from __future__ import annotations

import shutil

import pytest
from databases import drop, fresh_database
from skill_sources import BREW, write_files

from bot.agent.skills.skill_library import SkillLibrary
from bot.agent.skills.skill_rights import SkillRight
from bot.agent.skills.skill_sources import SkillFetcher, parse_source
from bot.agent.tools.registry import Audience
from bot.agent.workspace_files import WorkspaceFiles
from bot.bus.media.postgres_blobs import PostgresBlobs
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import SkillRefused
from bot.tape.stores.postgres import PostgresTapeStore
from bot.testing.manual_clock import ManualClock

HERE = Audience("fake:1", ("fake:7",))


@pytest.fixture
def url():
    url = fresh_database()
    yield url
    drop(url)


async def test_a_worker_reads_what_was_installed_through_another(tmp_path, url):
    source = write_files(tmp_path / "source", {"SKILL.md": BREW})
    database = Database(url, connections=4)
    await database.open()

    async def send(_: object) -> None:
        raise AssertionError("nothing is to be told")

    async def english(_: str) -> str:
        return "en"

    def worker(name: str) -> SkillLibrary:
        home = tmp_path / name
        return SkillLibrary(
            WorkspaceFiles(home / "workspace", ManualClock()),
            PostgresTapeStore(database, Wakeups(database)),
            PostgresBlobs(database),
            linked=lambda identity: [identity],
            fetcher=SkillFetcher(home / "incoming-skills"),
            send=send,
            language_of=english,
        )

    try:
        one, two = worker("one"), worker("two")
        copy, _ = await one.fetch(parse_source(str(source)))
        assert await two.offered(HERE) == ()
        await one.decide(SkillRight("brew", "chat:fake:1", "allow", copy.digest))
        assert [skill.name for skill in await two.offered(HERE)] == ["brew"]
        shutil.rmtree(source)
        content = await two.read("brew", "SKILL.md", HERE)
        assert (content.data, content.own) == (BREW.encode(), False)
        await two.remove("brew")
        assert await one.offered(HERE) == ()
        with pytest.raises(SkillRefused, match="there is no skill"):
            await one.read("brew", "SKILL.md", HERE)
        assert [name async for name in PostgresBlobs(database).names()] == []
    finally:
        await database.close()
