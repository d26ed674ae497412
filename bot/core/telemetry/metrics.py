"""All metrics by name; the documentation and dashboards follow this module.

They cost next to nothing until ``instruments.enable_metrics`` is called.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from bot.core.errors import SessionLost, TapebotError, VersionConflict
from bot.core.telemetry.instruments import Counter, Histogram, MetricSample, PolledMetric

_CALL = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
_TOOL = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)

# Messages.

PUBLISHED = Counter(
    "tapebot_inbound_published_total",
    "Messages from channels, by outcome: accepted, duplicate, full, refused.",
    ("channel", "outcome"),
)
REDELIVERED = Counter(
    "tapebot_inbound_redelivered_total",
    "Messages delivered again to a session, which an earlier holder may have worked on.",
)
DELIVERY_SECONDS = Histogram(
    "tapebot_delivery_seconds",
    "Time from an answer's arrival at a channel to its final report.",
    ("channel", "outcome"),
    bounds=_CALL,
)
INBOUND_DEPTH = PolledMetric(
    "tapebot_inbound_messages",
    "Accepted messages that are not finished, in all processes that share the bus.",
)
INBOUND_AGE = PolledMetric(
    "tapebot_inbound_oldest_seconds",
    "Age of the oldest accepted message that is not finished.",
)
UNDELIVERED = PolledMetric(
    "tapebot_undelivered_answers",
    "Answers without a final report, in all processes that share the bus.",
)
POISON = PolledMetric(
    "tapebot_inbound_poison_total",
    "Messages that this process set aside because every process that worked on them died.",
    kind="counter",
)

# Sessions.

SESSIONS_HELD = PolledMetric(
    "tapebot_sessions_held", "Sessions that this process has a worker for."
)
SESSIONS_FAILING = PolledMetric(
    "tapebot_sessions_failing", "Sessions whose worker has failed and is being retried."
)
HOLDS = PolledMetric("tapebot_session_holds", "Sessions whose messages this process holds.")
HOLDS_LOST = PolledMetric(
    "tapebot_session_holds_lost_total",
    "Sessions that this process lost because it did not renew them in time.",
    kind="counter",
)
HOLDS_RENEWED = PolledMetric(
    "tapebot_session_holds_renewed_total", "Renewals of sessions held.", kind="counter"
)
LEASES_LOST = PolledMetric(
    "tapebot_leases_lost_total",
    "Leases (channels, shards) that this process lost because it did not renew them in time.",
    kind="counter",
)
LEASES_HELD = PolledMetric("tapebot_leases_held", "Leases that this process holds.")
FENCED = Counter(
    "tapebot_fenced_writes_total",
    "Writes refused because another process held the session.",
    ("kind",),
)
ACKS_FENCED = PolledMetric(
    "tapebot_fenced_acks_total",
    "Acknowledgements refused because another process held the message.",
    kind="counter",
)

# Work.

TURN_SECONDS = Histogram(
    "tapebot_turn_seconds",
    "From the messages to the answer on the tape, by how the turn ended: ok, error, stopped.",
    ("outcome",),
    bounds=(*_CALL, 320.0),
)
MODEL_SECONDS = Histogram(
    "tapebot_model_call_seconds",
    "One call of a language model, without retries.",
    ("model", "outcome"),
    bounds=_CALL,
)
MODEL_TOKENS = Counter(
    "tapebot_model_tokens_total",
    "Tokens by model, purpose and kind: input (cached ones included), cached, output.",
    ("model", "purpose", "kind"),
)
MODEL_COST = Counter(
    "tapebot_model_cost_dollars_total",
    "US dollars by model and purpose, of calls whose price is known.",
    ("model", "purpose"),
)
MODEL_UNPRICED = Counter(
    "tapebot_model_calls_unpriced_total", "Calls whose price is not known.", ("model",)
)
TOOL_SECONDS = Histogram(
    "tapebot_tool_call_seconds",
    "One call of a tool, by tool and outcome: ok, error.",
    ("tool", "outcome"),
    bounds=_TOOL,
)
CONSOLIDATION_SECONDS = Histogram(
    "tapebot_consolidation_seconds",
    "Time of a consolidation by the model, by outcome: made, failed, cancelled.",
    ("outcome",),
    bounds=(*_CALL, 320.0),
)
CONSOLIDATIONS = Counter(
    "tapebot_consolidations_total",
    "Consolidations by outcome: kept, dropped (the conversation had changed), failed.",
    ("outcome",),
)
CONSOLIDATION_DUE = PolledMetric(
    "tapebot_consolidation_due_sessions", "Sessions held whose consolidation is due."
)
CONSOLIDATION_MESSAGES = PolledMetric(
    "tapebot_consolidation_due_messages", "Messages in those sessions that are not consolidated."
)
CONSOLIDATION_LAG = PolledMetric(
    "tapebot_consolidation_lag_seconds", "How long the oldest of those has been due."
)
ERRORS = Counter(
    "tapebot_errors_total",
    "Failures, by place: session, turn, model, consolidation.",
    ("where", "kind"),
)
CHECK_FAILURES = Counter("tapebot_check_failures_total", "Failed health checks.", ("check",))
SAMPLE_FAILURES = Counter(
    "tapebot_sample_failures_total", "Values that could not be measured.", ("sample",)
)


class ConsolidationBacklog:
    """When sessions became due for consolidation; session keys are never exported."""

    def __init__(self) -> None:
        self._due: dict[str, tuple[float, int]] = {}

    def mark_due(self, session: str, messages: int) -> None:
        """Record that a session is due, with its number of messages; the first time counts."""
        since, _ = self._due.get(session, (time.monotonic(), 0))
        self._due[session] = (since, messages)

    def mark_done(self, session: str) -> None:
        """Record that a session is no longer due, or no longer held here."""
        self._due.pop(session, None)

    async def metric_samples(self) -> list[MetricSample]:
        """Return the backlog as metrics."""
        oldest = min((since for since, _ in self._due.values()), default=None)
        return [
            MetricSample(CONSOLIDATION_DUE, len(self._due)),
            MetricSample(CONSOLIDATION_MESSAGES, sum(count for _, count in self._due.values())),
            MetricSample(CONSOLIDATION_LAG, 0.0 if oldest is None else time.monotonic() - oldest),
        ]


CONSOLIDATION_BACKLOG = ConsolidationBacklog()
"""The backlog of this process's sessions."""


def count_error(where: str, error: BaseException) -> None:
    """Count an error by type; writes and acknowledgements after a lost session also as fenced.

    Args:
        where: ``session``, ``turn``, ``model`` or ``consolidation``.
        error: The error; each member of an exception group counts.
    """
    for one in _leaves(error):
        ERRORS.add(1, where, type(one).__name__)
        if isinstance(one, VersionConflict | SessionLost):
            FENCED.add(1, type(one).__name__)


def outcome_of(error: BaseException | None) -> str:
    """Return an outcome label: ``ok``, a TapebotError's class name, ``cancelled`` or ``failed``."""
    if error is None:
        return "ok"
    if isinstance(error, TapebotError):
        return type(error).__name__
    return "failed" if isinstance(error, Exception) else "cancelled"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error
