"""Two workers of a fleet are killed at each step of calls that wait for a yes: none acts twice, none is lost."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from fleet_database import asleep, check_nothing_left, rows
from fleet_processes import Member
from fleet_trial import Trial, open_trial
from kill_checks import check_tape
from mcp_talk import calls_of, http_process, port_of, tool, write_tools
from sampling import many
from waiting import SECONDS, until

from bot.memory.records.pending_calls import (
    TOOL_DECIDED,
    TOOL_PENDING,
    TOOL_RESULT,
    TOOL_STARTED,
)
from bot.memory.records.turn_marks import turn_end
from bot.tape.entries import TapeEntry
from testkit.openai_server import Call, Reply

pytestmark = pytest.mark.slow

STEPS = (TOOL_PENDING, TOOL_DECIDED, TOOL_STARTED, "runs", TOOL_RESULT, "anything")
"""When a worker is killed: an entry is being written, the tool runs."""

SEED = 7
TIMES = 7
"""How often at each step."""

TOOL = "mcp_files_slow"
_WORD = re.compile(r"k[0-9a-f]{6}")
_ORDER = re.compile(rf"write ({_WORD.pattern})")
_CANNOT = "I have nothing that writes"
_OUTCOME = re.compile(r"The user approved it, .*: call \d+")
_PATIENCE = 10.0
"""Seconds after which a worker is killed though nobody came to the step."""

_TRAP = """
create table public.trap (name bytea);
create function public.trap() returns trigger language plpgsql as $$
begin
    -- Whoever writes this is killed meanwhile. It is written all the same, unless this is ended.
    if exists (select from public.trap where position('"name":"'::bytea || name || '"'::bytea in new.line) > 0) then
        perform pg_sleep(0.4);
    end if;
    return new;
end $$;
create trigger trap before insert on tapebot.entry for each row execute function public.trap();
"""

_SET = "insert into public.trap values (convert_to(%s, 'UTF8'))"

_HOLDER = """
select holder from tapebot.inbound
where session = %s and holder is not null and free_at > clock_timestamp()
"""

# One more death and its person would have to ask for it again, as of what kills its holders.
_IN_DANGER = """
select count(*) from tapebot.inbound
where kind = 'in' and reads - returned > 3
"""

_LEFT = """
select (select count(*) from tapebot.inbound where kind = 'in')
    + (select count(*) from tapebot.outbox)
"""


def reply_for(request: dict[str, Any]) -> Reply | None:
    """Write what the newest message orders, or repeat what became of a call."""
    last = next(one for one in reversed(request["messages"]) if one["role"] == "user")
    text = str(last["content"])
    if found := _OUTCOME.search(text):
        return Reply(f"I was told: {found[0]}")
    if not (words := _ORDER.findall(text)):
        return None
    ended = str(request["messages"][-1]["content"])
    if last is not request["messages"][-1] and "waits for the user's yes" in ended:
        return Reply(f"I ask for {words[-1]}.")
    names = {one["function"]["name"] for one in request.get("tools", ())}
    if last is not request["messages"][-1] or TOOL not in names:
        return Reply(f"{_CANNOT} {words[-1]}.")
    return Reply(calls=(Call(TOOL, json.dumps({"text": words[-1]})),))


class Play:
    """People who order, and answer from several surfaces; and workers that are killed."""

    def __init__(self, trial: Trial, folder: Path) -> None:
        self.trial = trial
        self.chats: dict[str, int] = {}
        self.said: dict[int, list[str]] = {chat: [] for chat in trial.world.chats}
        self.over = False
        self._folder = folder
        self._struck: set[int] = set()
        self._chance = trial.chance

    @property
    def people(self) -> list[int]:
        """Those who order, in their private chats; none owns the bot."""
        return self.trial.world.chats[1:]

    def told(self) -> str:
        books = self.trial.world.telegram.records
        return "\n".join(text for chat in self.said for text in books.texts(chat))

    def acts(self) -> str:
        return "\n".join(calls_of(self._folder))

    # People.

    async def order(self, chat: int) -> None:
        """Order one thing after the other, answer the question for each, and wait for what became of it."""
        while not self.over:
            word = f"k{self._chance.randrange(16**6):06x}"
            self.chats[word] = chat
            self._say(chat, f"write {word}")
            number = await until(lambda w=word: self._number(w), every=0.05)
            if number == _CANNOT:
                continue
            surfaces = self._chance.sample(
                [self._in_the_chat, self._by_the_button, self._by_an_owner],
                self._chance.choice([2, 2, 3]),
            )
            async with anyio.create_task_group() as tasks:
                for surface in surfaces:
                    name = self._chance.choice(["approve", "approve", "approve", "deny"])
                    tasks.start_soon(surface, chat, f"/{name} {number}")
                    # What is said elsewhere takes longer; so each of them is first at times.
                    await anyio.sleep(self._chance.choice([0.0, 0.0, 0.5]))
            await until(lambda n=number: self._came_of(n), every=0.05)

    async def _in_the_chat(self, chat: int, command: str) -> None:
        self._say(chat, command)

    async def _by_the_button(self, chat: int, command: str) -> None:
        telegram = self.trial.world.telegram
        # The button of an answered question is gone, but a person may have pressed it before they saw that.
        message, data = next(
            (message, one["callback_data"])
            for message in telegram.records.messages(chat)
            for version in message.versions
            for row in version.buttons
            for one in row
            if one["text"].lower() == command[1:]
        )
        telegram.press(message, data, user=chat, chat=chat)

    async def _by_an_owner(self, _: int, command: str) -> None:
        self._say(self.trial.world.chats[0], command)

    def _say(self, chat: int, text: str) -> None:
        self.said[chat].append(str(self.trial.world.telegram.say(chat, chat, text)))

    def _number(self, word: str) -> str | None:
        """Return the number of the call that writes a word, or that it cannot be written, once it is told."""
        for text in self.trial.world.telegram.records.texts(self.chats[word]):
            if f"{_CANNOT} {word}" in text:
                return _CANNOT
            if "May I run" in text and word in text and (found := re.search(r"call (\d+)", text)):
                return found[1]
        return None

    def _came_of(self, number: str) -> bool:
        pattern = rf"The user approved it, .*: call {number}\b|Denied: call {number}\b|Call {number} was denied"
        return re.search(pattern, self.told()) is not None

    # Kills.

    async def strike(self, step: str) -> bool:
        """Kill the worker that is at a step, and start it again; return whether anybody came there."""
        fleet, found = self.trial.fleet, None
        await until(self._nothing_in_danger, every=0.05)
        with anyio.move_on_after(_PATIENCE):
            found = await self._await(step)
        member = found or self._chance.choice(fleet.workers)
        fleet.kill(member)
        await rows(fleet, "delete from public.trap")
        if self._chance.random() < 0.5:
            for backend, victim in await asleep(fleet):
                if victim is member:
                    await rows(fleet, "select pg_terminate_backend(%s)", [backend])
        self._struck |= {backend for backend, _ in await asleep(fleet)}
        await fleet.again(member)
        return found is not None

    async def _await(self, step: str) -> Member | None:
        if step == "anything":
            await anyio.sleep(self._chance.random())
            return self._chance.choice(self.trial.fleet.workers)
        if step == "runs":
            before = set(_WORD.findall(self.acts()))
            words = await until(lambda: set(_WORD.findall(self.acts())) - before)
            await anyio.sleep(self._chance.choice([0.0, self._chance.uniform(0, 0.2)]))
            return await self._holder(self.chats[words.pop()])
        await rows(self.trial.fleet, _SET, [step])
        return await until(self._trapped, every=0.02)

    async def _trapped(self) -> Member | None:
        found = await asleep(self.trial.fleet)
        return next((one for backend, one in found if backend not in self._struck), None)

    async def _holder(self, chat: int) -> Member | None:
        found = await rows(self.trial.fleet, _HOLDER, [f"telegram:{chat}"])
        pids = {int(holder.split("/")[1]) for (holder,) in found}
        return next((one for one in self.trial.fleet.workers if one.pid in pids), None)

    async def _nothing_in_danger(self) -> bool:
        [[count]] = await rows(self.trial.fleet, _IN_DANGER)
        return not count

    async def is_quiet(self) -> bool:
        """Say whether every message is worked and every answer shown."""
        [[left]] = await rows(self.trial.fleet, _LEFT)
        return not self.trial.world.telegram.records.unconfirmed and not left


@asynccontextmanager
async def acting_fleet(folder: Path) -> AsyncIterator[Play]:
    """Have a fleet, and a server of tools that no kill reaches."""
    write_tools(folder, tool("slow"))
    with http_process(folder):
        servers = {"files": {"url": f"http://127.0.0.1:{await port_of(folder)}/mcp"}}
        async with open_trial(
            folder / "fleet",
            SEED,
            people=7,
            gateways=1,
            workers=2,
            lease=2.0,
            mcp=json.dumps(servers),
        ) as trial:
            trial.world.model.reply_for = reply_for
            await rows(trial.fleet, _TRAP)
            await trial.traffic.begin()
            play = Play(trial, folder)
            # Each worker may still be on its way to the server of tools.
            await insist(play, "/mcp allow files slow ask everybody", "Allowed:")
            yield play


async def insist(play: Play, command: str, answer: str) -> None:
    chat = play.trial.world.chats[0]
    with anyio.fail_after(SECONDS):
        while answer not in play.told():
            before = play.told()
            play.trial.world.telegram.say(chat, chat, command)
            await until(lambda b=before: play.told() != b, every=0.05)


async def kill_often(play: Play) -> Counter[str]:
    """Kill at every step while people order; return how often somebody was there."""
    steps = [*STEPS] * many(TIMES)
    play.trial.chance.shuffle(steps)
    struck: Counter[str] = Counter()
    async with anyio.create_task_group() as tasks:
        for person in play.people:
            tasks.start_soon(play.order, person)
        for step in steps:
            if await play.strike(step):
                struck[step] += 1
        play.over = True
    await until(play.is_quiet, every=0.1)
    return struck


def acted_once(
    tapes: Iterable[list[TapeEntry]], written: str, orders: Iterable[str]
) -> Counter[str]:
    """Count the calls of all sessions by what became of them."""
    found: Counter[str] = Counter()
    asked: set[int] = set()
    for entries in tapes:
        numbers = {}
        for name in (TOOL_PENDING, TOOL_DECIDED, TOOL_RESULT):
            named = [entry for entry in entries if entry.name == name]
            numbers[name] = {entry.data["number"]: entry.data for entry in named}
            assert len(numbers[name]) == len(named), f"twice: {name}"
        decided, results = numbers[TOOL_DECIDED], numbers[TOOL_RESULT]
        yes = {number for number, data in decided.items() if data["decision"] == "yes"}
        assert set(results) == yes
        assert not asked & set(numbers[TOOL_PENDING]), "two sessions gave one number"
        asked |= set(numbers[TOOL_PENDING])
        for number, data in numbers[TOOL_PENDING].items():
            [word] = re.findall(r"k[0-9a-f]{6}", data["arguments"])
            status = results[number]["status"] if number in yes else "no"
            most = {"ok": (1,), "no": (0,)}.get(status, (0, 1))
            assert written.count(word) in most, (word, status)
            found[status] += 1
    assert all(written.count(word) <= 1 for word in orders)
    return found


def told_once(entries: list[TapeEntry], shown: str) -> None:
    words = {"ok": "and it ran", "error": "and it failed", "unknown": "it is not known"}
    for result in (entry.data for entry in entries if entry.name == TOOL_RESULT):
        pattern = rf"{words[result['status']]}.*: call {result['number']}\b"
        assert len(re.findall(pattern, shown)) == 1, (result, shown)


@pytest.mark.family("fleets")
@pytest.mark.timeout(600)
async def test_calls_that_wait_for_a_yes_act_once_whichever_worker_is_killed_at_which_step(
    tmp_path: Path,
):
    async with acting_fleet(tmp_path) as play:
        fleet, books = play.trial.fleet, play.trial.world.telegram.records
        struck = await kill_often(play)
        await fleet.stop_all()
        await check_nothing_left(fleet)
        tapes = {chat: await play.trial.read(f"telegram:{chat}") for chat in play.said}
        for chat, entries in tapes.items():
            check_tape(entries)
            ends = filter(None, map(turn_end, entries))
            settled = {one for end in ends for one in end.data["inbound"]}
            assert set(play.said[chat]) <= settled
            told_once(entries, "\n".join(books.texts(chat)))
        found = acted_once(tapes.values(), play.acts(), play.chats)
        kills = sum(member.lives - 1 for member in fleet.members.values())
    assert found.total() + play.told().count(_CANNOT) == len(play.chats)
    assert kills == len(STEPS) * many(TIMES)
    assert set(struck) == set(STEPS)
    assert found["ok"] > 0
