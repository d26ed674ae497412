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
from bot.llm.retry import FallbackModel, RetryingModel, Warmable

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
    """Take the waits out; the number of tries stays."""
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


@pytest.mark.usefixtures("without_waits")
@pytest.mark.parametrize("seconds", [61.0, 31.0], ids=["too long", "after the last moment"])
async def test_a_long_wait_is_not_waited_for(seconds):
    """Neither more than a minute, nor past the time that all tries have together."""
    inner = Told([TransientModelError("busy", retry_after=seconds), "late"])
    with pytest.raises(TransientModelError):
        await retrying(inner).complete(ASK)
    assert inner.calls == 1


@pytest.mark.usefixtures("without_waits")
async def test_a_failing_call_gives_its_place_back_before_it_is_tried_again():
    slots = CallSlots(1)
    held: list[float] = []
    inner = Told([TransientModelError("busy"), "ok"])
    inner.during = lambda: held.append(slots.statistics()["running"])
    await retrying(inner, slots).complete(ASK)
    assert (held, slots.statistics()["running"]) == ([1, 1], 0)


async def test_calls_of_all_models_share_one_limit():
    """Ten calls of two models, two places: never more than two at once."""
    slots = CallSlots(2)
    running: list[int] = []
    models = [retrying(Told(["ok"]), slots) for _ in range(2)]
    for model in models:
        model._inner.during = lambda: running.append(slots.statistics()["running"])
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(models[number % 2].complete, ASK)
    assert len(running) == 10
    assert max(running) == 2


async def test_a_cancelled_back_off_ends_at_once():
    inner = Told([TransientModelError("busy", retry_after=20.0), "late"])
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            inner.during = lambda: group.start_soon(cancel_when_waiting)

            async def cancel_when_waiting() -> None:
                await anyio.wait_all_tasks_blocked()
                scope.cancel()

            await retrying(inner).complete(ASK)
    assert (scope.cancelled_caught, inner.calls) == (True, 1)


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


async def test_a_model_that_is_down_is_asked_all_the_same_where_no_other_answers():
    first, second = Told([TransientModelError("down"), "back"]), Told([ModelRejected("no")])
    model = FallbackModel([first, second])
    with pytest.raises(TransientModelError, match="down"):
        await model.complete(ASK)
    assert (await model.complete(ASK)).content == "back"


async def test_a_prompt_that_is_too_long_is_the_callers_to_shorten():
    second = Told(["here"])
    with pytest.raises(ContextOverflow):
        await FallbackModel([Told([ContextOverflow("long")]), second]).complete(ASK)
    assert second.calls == 0


async def test_where_all_fail_the_first_error_is_told_and_the_others_noted():
    models = [Told([ModelAuthError("no key")]), Told([ModelRejected("no such model")])]
    with pytest.raises(ModelAuthError, match="no key") as caught:
        await FallbackModel(models).complete(ASK)
    assert caught.value.__notes__ == ["and then: no such model"]


async def test_all_models_are_closed_and_the_first_ones_name_is_shown():
    inner = [Told([""], "told/one"), Told([""], "told/two")]
    model = FallbackModel([retrying(each) for each in inner])
    await model.aclose()
    assert (model.name, [each.closed for each in inner]) == ("told/one", [True, True])


async def test_a_model_with_nothing_to_load_is_warmed_without_harm():
    model = FallbackModel([retrying(Told(["ok"]))])
    assert isinstance(model, Warmable)
    await model.warm()
