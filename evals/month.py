"""A month of daily use: what is remembered, beside what is true: ``python -m evals.month``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from bot.llm.base import Model, Usage
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.records.fact import Fact
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT
from bot.memory.session.state.turn_fold import parse_usage
from bot.testing.host import Host, session_host
from evals.life import ATTRIBUTES, Keeper, Life

TURNS = 3_000
_DAYS = 30
_PERSON = "person:fake:7"


@dataclass(frozen=True, slots=True)
class Month:
    """What a month left.

    Attributes:
        life: What was said, and what is true at its end.
        active: Facts that are believed.
        ended: Facts that are not any more.
        pending: Facts that wait for a person.
        rendered: Bytes of long-term memory, the largest of the month.
        batches: Entries of the scope's tape.
        consolidations: Done.
        failures: Of consolidations.
        usage: Of consolidations.
        invented: Claims of the model that nobody made.
    """

    life: Life
    active: list[Fact]
    ended: list[Fact]
    pending: list[Fact]
    rendered: int
    batches: int
    consolidations: int
    failures: int
    usage: Usage
    invented: list[str]

    def right(self) -> dict[str, str]:
        """Return the attributes of which the true value is believed, and no other."""
        believed = {name: self._values(name) for name in self.life.current}
        true = self.life.current
        return {
            name: true[name] for name, values in believed.items() if set(values) == {true[name]}
        }

    def stale(self) -> list[Fact]:
        """Return what is believed of an attribute and not true any more."""
        return [
            fact
            for attribute in ATTRIBUTES
            for fact in self.active
            if (value := attribute.keeps(fact.text)) is not None
            and value != self.life.current.get(attribute.name)
        ]

    def _values(self, name: str) -> list[str]:
        attribute = next(one for one in ATTRIBUTES if one.name == name)
        found = (attribute.keeps(fact.text) for fact in self.active)
        return [value for value in found if value is not None]


async def simulate(folder: Path, model: Model, *, turns: int = TURNS, seed: int = 1) -> Month:
    """Live a month with a model that consolidates; end it with ``/new``."""
    life, rendered = Life(seed), 0
    async with session_host(folder, model) as host:
        for number, said in enumerate(life.says(turns)):
            await host.channel.ask(said)
            host.clock.advance(_DAYS * 86_400 / turns)
            if number % 50 == 0:
                await anyio.wait_all_tasks_blocked()
                rendered = max(rendered, await _rendered(host))
        for _ in range(4):
            host.clock.advance(3_600)
            if await host.channel.ask("/new") == "New session started.":
                break
        rendered = max(rendered, await _rendered(host))
        scope = host.services.scopes.person(_PERSON)
        await scope.open()
        host.clock.advance(60)
        await host.wait_until(lambda: not scope.fold.awaiting_judge())
        return await _month(host, life, rendered, model)


async def _month(host: Host, life: Life, rendered: int, model: Model) -> Month:
    scope = host.services.scopes.person(_PERSON)
    history = await host.events(HISTORY_EVENT)
    failures = await host.events(CONSOLIDATION_FAILED_EVENT)
    spent = [parse_usage(one.data.get("usage")) for one in (*history, *failures)]
    facts = list(scope.fold.facts.values())
    return Month(
        life,
        scope.active(),
        [one for one in facts if one.status in ("superseded", "retired")],
        scope.fold.pending(),
        rendered,
        await scope.tape.version(),
        len(history),
        len(failures),
        sum(spent, Usage()),
        getattr(model, "invented", []),
    )


async def _rendered(host: Host) -> int:
    newest = (await host.events("memory.long_term"))[-1:]
    return max((len(str(one.data["content"]).encode()) for one in newest), default=0)


async def main() -> None:
    """Live it with a model that errs, and print what is remembered."""
    with TemporaryDirectory() as folder:
        month = await simulate(Path(folder), Keeper())
    known = len(month.life.current)
    print(f"turns                             {TURNS}")
    print(f"facts that change, right at the end  {len(month.right())} of {known}")
    print(f"believed, no longer true          {len(month.stale())}")
    print(f"facts believed; ended             {len(month.active)}; {len(month.ended)}")
    print(f"bytes in the prompt, at most      {month.rendered}")
    print(f"consolidations; failed            {month.consolidations}; {month.failures}")
    print(f"tokens that they read             {month.usage.prompt_tokens}")


if __name__ == "__main__":
    anyio.run(main)
