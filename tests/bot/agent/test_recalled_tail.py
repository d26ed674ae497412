"""What is recalled unasked, and when nothing is even looked for."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bot.agent.views.automatic_recall import MIN_RECALL_BUDGET, AutomaticRecall
from bot.memory.session.recall import RecallableFact
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.runtime.app.build import open_app
from bot.runtime.settings import load_settings
from bot.tape.entries import message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.testing.manual_clock import ManualClock


class Counting(FileTapeStore):
    """A store that counts searches."""

    searches = 0

    async def search(self, query):
        self.searches += 1
        return await super().search(query)


class Session:
    """A session's state on a tape, as a turn finds it."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.store = Counting(folder / "tapes", sync=False, clock=self.clock)
        self.tape = TapeService(self.store, "a")
        self.fold = SessionFold(WindowFold(200, 96_000))
        self.recalled = AutomaticRecall()
        self.tape.observe(self.fold.apply)
        self.zone = MemoryZone(
            self.tape,
            retention_days=30,
            fold=self.fold.zone,
            timezone=ZoneInfo("UTC"),
            clock=self.clock,
        )

    async def say(self, *texts: str) -> None:
        for text in texts:
            await self.tape.append(message("user", text, sender={"id": "1", "name": "Ada"}))

    async def tail(
        self,
        prompt: str = "",
        room: int = 400,
        facts: tuple[RecallableFact, ...] = (),
        *,
        lives_on_it: bool = True,
        reads_prompt: bool = True,
    ) -> str:
        lines = await self.recalled.read(
            self.tape,
            self.fold,
            self.zone,
            self.clock,
            prompt,
            room=room,
            lives_on_it=lives_on_it,
            reads_prompt=reads_prompt,
            facts=lambda: facts,
        )
        return "\n".join(lines)


@pytest.fixture
async def session(tmp_path):
    made = Session(tmp_path)
    await made.tape.ensure_bootstrap_anchor()
    yield made
    await made.store.close()


@pytest.mark.parametrize(
    ("tokens", "builder", "recalls"), [(0, "default", False), (0, "with-recall", True)]
)
async def test_a_setting_turns_it_off_but_for_builders_that_live_on_it(
    tmp_path, tokens, builder, recalls
):
    chosen = load_settings(
        home=tmp_path, model="offline", recall_tokens=tokens, context_builder=builder
    )
    async with open_app(chosen) as app:
        agent = app.services.agent
        assert agent.recall_tokens == tokens
        assert agent.builder.always_recall is recalls
        assert app.vectors is None
    assert MIN_RECALL_BUDGET == 600


async def test_vectors_are_kept_where_a_model_is_set_and_removed_where_none_is(tmp_path):
    async with open_app(load_settings(home=tmp_path, embedding_model="local")) as app:
        assert app.vectors is app.services.agent.vectors
        await app.store.create_tape("a")
        await app.store.append("a", message("user", "The boat is green."))
        await app.vectors.catch_up("a")
        assert list((tmp_path / "vectors").iterdir())
    async with open_app(load_settings(home=tmp_path)) as app:
        assert app.vectors is None
        assert not (tmp_path / "vectors").exists()
