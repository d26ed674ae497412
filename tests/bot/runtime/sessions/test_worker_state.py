"""What a worker does with messages, over random sequences of messages, jobs and their ends."""

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sampling import examples

from bot.runtime.sessions.worker_state import Action, Job, MessageKind, WorkerState

STARTS = {Action.START_TURN: Job.TURN, Action.RETRY: Job.TURN, Action.NEW_SESSION: Job.NEW_SESSION}
STOPS = {Action.CANCEL_JOB, Action.REPLY_IDLE, Action.REPLY_STOPPING}


@dataclass(frozen=True)
class Message:
    number: int
    kind: MessageKind


class Worker(RuleBasedStateMachine):
    """Carries out what the state says, as the message loop does, and notes it."""

    def __init__(self) -> None:
        super().__init__()
        self.state = WorkerState[Message]()
        self.count = 0
        self.handled: list[Message] = []
        self.cancelled: list[Message] = []
        self.answered: list[Message] = []

    def carry_out(self, message: Message, action: Action) -> None:
        assert action is not Action.DEFER
        self.handled.append(message)
        if action in STARTS:
            assert self.state.job is None
            self.state.start(STARTS[action])
        if action is Action.JOIN_TURN:
            assert self.state.job is Job.TURN

    @rule(kind=st.sampled_from(MessageKind))
    def receive(self, kind: MessageKind) -> None:
        self.count += 1
        message = Message(self.count, kind)
        waiting, running = list(self.state.deferred), self.state.job
        action = self.state.receive(message, kind)
        assert (action in STOPS) == (kind is MessageKind.STOP)
        if action is Action.DEFER:
            assert running is not None
            assert list(self.state.deferred) == [*waiting, message]
            return
        assert not waiting or kind in (MessageKind.STOP, MessageKind.REMINDER)
        if action is Action.CANCEL_JOB:
            assert running is not None
            self.cancelled.append(message)
        elif action in STOPS:
            self.answered.append(message)
        else:
            self.carry_out(message, action)

    @precondition(lambda self: self.state.job is not None)
    @rule()
    def end_job(self) -> None:
        if (stop := self.state.take_stop()) is not None:
            self.answered.append(stop)
        self.state.end()
        while (found := self.state.next_deferred(lambda one: one.kind)) is not None:
            self.carry_out(*found)

    @invariant()
    def nothing_waits_for_an_idle_worker(self) -> None:
        if self.state.job is None:
            assert not self.state.deferred
            assert self.state.stop is None

    @invariant()
    def messages_are_handled_once_in_order_and_none_is_lost(self) -> None:
        seen = [*self.handled, *self.state.deferred]
        # A reminder needs no model, so it waits for nothing.
        waiting = [one.number for one in seen if one.kind is not MessageKind.REMINDER]
        assert waiting == sorted(waiting)
        stops = [*self.answered, *([self.state.stop] if self.state.stop else [])]
        assert {one.number for one in [*seen, *stops]} == set(range(1, self.count + 1))
        assert len(seen) + len(stops) == self.count

    @invariant()
    def one_stop_cancels_a_job(self) -> None:
        assert all(one in self.answered or one is self.state.stop for one in self.cancelled)


TestWorker = Worker.TestCase
TestWorker.settings = settings(max_examples=examples(200), stateful_step_count=40, deadline=None)


def test_a_second_job_cannot_start_beside_another():
    state = WorkerState[Message]()
    state.start(Job.TURN)
    with pytest.raises(AssertionError, match="running"):
        state.start(Job.NEW_SESSION)
