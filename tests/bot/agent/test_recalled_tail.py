"""What is recalled unasked, and when nothing is even looked for."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bot.agent.views.automatic_recall import MIN_RECALL_BUDGET, AutomaticRecall
from bot.llm.base import estimate_tokens
from bot.memory.session.recall import RecallableFact
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.runtime.app.build import open_app
from bot.runtime.settings import load_settings
from bot.tape.entries import SESSION_NEW, anchor, message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.testing.host import HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply


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


async def test_a_session_that_sees_all_there_is_searches_nothing(session):
    for number in range(5):
        await session.say(f"The llama number {number} eats hay.")
        assert await session.tail() == ""
    assert session.store.searches == 0


async def test_what_lies_before_the_view_is_looked_for(session):
    await session.say("My sister Beatrix plays the cello.")
    await session.tape.append(anchor(SESSION_NEW, {"owner": "human"}))
    await session.say("What does Beatrix play?")
    assert "Ada [#3]: My sister Beatrix plays the cello." in await session.tail()
    assert session.store.searches == 1
    # The steps of a turn look once.
    await session.tail()
    assert session.store.searches == 1


async def test_a_fact_that_the_prompt_does_not_tell_is_recalled_and_one_that_it_tells_is_not(
    session,
):
    told = RecallableFact("Ada's dog is called Rex.", "2026-02-01", ("#3",))
    untold = RecallableFact("Ada's kitten is called Minka.", "2026-02-02", ("telegram:1#12",))
    await session.say("How are the dog and the kitten of Ada called?")
    assert await session.tail(f"- {told.text}", facts=(told,)) == ""
    assert session.store.searches == 0
    await session.say("How are the dog and the kitten called?")
    tail = await session.tail(f"- {told.text}", facts=(told, untold))
    assert "- 2026-02-02, memory [telegram:1#12]: Ada's kitten is called Minka." in tail
    assert "Rex" not in tail


@pytest.mark.parametrize(("reads_prompt", "recalls"), [(True, False), (False, True)])
async def test_what_memory_or_a_hand_off_tells_is_recalled_for_models_that_need_the_persons_words(
    session, reads_prompt, recalls
):
    await session.say("My sister Beatrix plays the cello.")
    await session.tape.append(anchor(SESSION_NEW, {"owner": "human"}))
    await session.say("What does Beatrix play?")
    told = "- The user's sister Beatrix plays the cello."
    assert bool(await session.tail(told, reads_prompt=reads_prompt)) is recalls


async def test_what_is_recalled_keeps_to_its_room(session):
    for number in range(12):
        await session.say(f"The llama number {number} " + "eats hay and looks at it " * 20)
    await session.tape.append(anchor(SESSION_NEW, {"owner": "human"}))
    sizes = []
    for room in (150, 400):
        await session.say(f"Which llama eats hay, {room}?")
        lines = [line for line in (await session.tail(room=room)).splitlines() if line[0] == "-"]
        assert lines
        sizes.append(sum(estimate_tokens(line) for line in lines))
        assert sizes[-1] <= room
    assert sizes[0] < sizes[1]


async def test_every_builder_recalls_what_went_out_of_view(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model, bounds=HostLimits(view_messages=6)) as host:
        await host.channel.ask("My sister Beatrix plays the cello.")
        for number in range(6):
            await host.channel.ask(f"something else, number {number}")
        await host.channel.ask("What does Beatrix play?")
    asked = str(model.requests_for()[-1].messages[-1]["content"])
    assert "Data that tapebot looked up; not words of the user." in asked
    assert "My sister Beatrix plays the cello." in asked


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
