"""Retries and fallbacks over models that do as they are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
import pytest
import stamina

from bot.core.errors import (
    ContextOverflow,
    ModelAuthError,
    ModelRejected,
    ModelUnavailable,
    TransientModelError,
)
from bot.llm.base import CapabilityProfile, ModelReply, ModelRequest, OnText
from bot.llm.call_slots import CallSlots
from bot.llm.retry import FallbackModel, RetryingModel

ASK = ModelRequest([{"role": "user", "content": "Hello?"}])


@dataclass
class Told:
    """A model that raises or replies as its list says, the last entry for ever."""

    outcomes: list[Exception | str]
    name: str = "told/one"
    profile: CapabilityProfile = field(default_factory=CapabilityProfile)
    calls: int = 0
    closed: bool = False
    during: Callable[[], object] | None = None

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        outcome = self.outcomes[min(self.calls, len(self.outcomes) - 1)]
        self.calls += 1
        if self.during is not None:
            self.during()
        await anyio.lowlevel.checkpoint()
        if isinstance(outcome, Exception):
            raise outcome
        return ModelReply(outcome, model=self.name)

    async def aclose(self) -> None:
        self.closed = True


def retrying(inner, slots=None, **changes) -> RetryingModel:
    settings = {"attempts": 4, "timeout_total": 30.0, **changes}
    return RetryingModel(inner, slots=slots or CallSlots(1), **settings)


@pytest.fixture
def without_waits():
    with stamina.set_testing(True, attempts=4):
        yield


@pytest.mark.usefixtures("without_waits")
async def test_an_error_that_may_pass_is_tried_a_bounded_number_of_times():
    inner = Told([TransientModelError("busy")])
    with pytest.raises(TransientModelError, match="busy"):
        await retrying(inner).complete(ASK)
    assert inner.calls == 4


@pytest.mark.usefixtures("without_waits")
@pytest.mark.parametrize(
    "error", [ContextOverflow, ModelAuthError, ModelRejected, ModelUnavailable, KeyError]
)
async def test_an_error_that_will_not_pass_is_not_tried_again(error):
    inner = Told([error("no"), "late"])
    with pytest.raises(error):
        await retrying(inner).complete(ASK)
    assert inner.calls == 1


@pytest.mark.parametrize(
    "error",
    [TransientModelError("a"), ModelAuthError("a"), ModelUnavailable("a"), ModelRejected("a")],
)
async def test_models_are_asked_in_order_until_one_answers(error):
    first, second, third = Told([error]), Told(["here"], "told/two"), Told(["never"], "told/three")
    reply = await FallbackModel([first, second, third]).complete(ASK)
    assert (reply.content, reply.model, third.calls) == ("here", "told/two", 0)


async def test_a_model_that_is_down_is_not_waited_for_in_every_turn():
    first, second = Told([TransientModelError("down")]), Told(["here"], "told/two")
    model = FallbackModel([first, second])
    replies = [(await model.complete(ASK)).content for _ in range(3)]
    assert replies == ["here"] * 3
    assert first.calls == 1


async def test_a_prompt_that_is_too_long_is_the_callers_to_shorten():
    second = Told(["here"])
    with pytest.raises(ContextOverflow):
        await FallbackModel([Told([ContextOverflow("long")]), second]).complete(ASK)
    assert second.calls == 0
