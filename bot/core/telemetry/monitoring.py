"""Serve metrics, liveness and readiness over HTTP."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version

import anyio
from anyio.abc import TaskGroup, TaskStatus

from bot.core.telemetry import instruments
from bot.core.telemetry.gauge_polling import EVERY, GaugePoller, Read
from bot.core.telemetry.health import SECONDS, CheckFunction, HealthCheck, HealthCheckResult
from bot.core.telemetry.instruments import MetricSample, PolledMetric
from bot.core.telemetry.metrics import CONSOLIDATION_BACKLOG

_STARTED = PolledMetric(
    "tapebot_start_time_seconds", "When the process was set up, since the epoch."
)
_STARTING = "it is starting"
_INFO = PolledMetric("tapebot_info", "Which tapebot this is.", ("version", "role"))


class MonitoringServer:
    """Collects health checks and metric sources, and serves them while it runs.

    Metrics are enabled from its construction until ``run`` ends.

    Args:
        role: The process's role: ``gateway``, ``worker`` or ``both``.

    Raises:
        SettingsError: The packages are missing.
    """

    def __init__(self, role: str = "both") -> None:
        self._registry = instruments.enable_metrics()
        self._checks: list[HealthCheck] = []
        self._gauge_poller = GaugePoller()
        self._tasks: TaskGroup | None = None
        self._unready: str | None = _STARTING
        self._ended: dict[str, str | None] = {}
        started = time.time()

        async def about() -> list[MetricSample]:
            return [
                MetricSample(_STARTED, started),
                MetricSample(_INFO, 1, (version("tapebot"), role)),
            ]

        self.sample("program", about)
        self.sample("consolidation", CONSOLIDATION_BACKLOG.metric_samples)

    # Registration.

    def check(
        self, name: str, ask: CheckFunction, *, alive: bool = False, seconds: float = SECONDS
    ) -> None:
        """Add a health check to ``/readyz``, and with ``alive`` to ``/healthz``, too.

        Args:
            name: The check's name, for people and as a label.
            ask: Returns why something is unhealthy, None if it is healthy. An exception is a
                failure, too; of third-party errors only the type is shown.
            alive: Whether a restart of the process would help if it fails.
            seconds: The timeout.
        """
        self._checks.append(HealthCheck(name, ask, alive=alive, seconds=seconds))

    def sample(self, name: str, read: Read, *, every: float = EVERY) -> None:
        """Add a source of sampled metrics; call it before ``run``.

        Args:
            name: The source's name, for people and as a label.
            read: Returns the samples.
            every: Seconds between two calls.
        """
        self._gauge_poller.add(name, read, every)

    def set_unready(self, reason: str | None) -> None:
        """Report the process as not ready, for this reason; with None the checks decide.

        Until the first call it reports that it is starting. Critical tasks may end while it is
        unready for another reason.
        """
        self._unready = reason

    async def run_critical(self, name: str, job: Callable[[], Awaitable[object]]) -> None:
        """Run a task of the program; once it has ended, the process is reported as not alive."""
        self._ended[name] = None
        how = "by itself"
        try:
            await job()
        except BaseException as error:
            how = f"with {type(error).__name__}"
            raise
        finally:
            if self._unready in {None, _STARTING}:
                self._ended[name] = f"the {name} ended {how}"

    # Serving.

    async def check_results(self, *, alive: bool) -> list[HealthCheckResult]:
        """Run all checks at once; with ``alive`` only those of the process itself."""
        tasks = self._tasks
        if tasks is None:
            return [HealthCheckResult("program", "it does not run")]
        own = [HealthCheckResult(name, reason) for name, reason in self._ended.items()]
        if not alive:
            own.append(HealthCheckResult("program", self._unready))
        asked = [one for one in self._checks if one.alive or not alive]
        found: dict[int, HealthCheckResult] = {}

        async def ask(place: int, check: HealthCheck) -> None:
            found[place] = await check.result(tasks)

        async with anyio.create_task_group() as asking:
            for index, check in enumerate(asked):
                asking.start_soon(ask, index, check)
        return own + [found[place] for place in range(len(asked))]

    async def run(
        self,
        address: str,
        *,
        task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve HTTP at ``HOST:PORT`` until cancelled; ``tasks.start`` returns the server's URL.

        Raises:
            SettingsError: It cannot listen there; most often another program uses the port.
        """
        from bot.core.telemetry.monitoring_http import application, bound_socket, serve

        with bound_socket(address) as bound:
            self._registry.register(self._gauge_poller)
            try:
                async with anyio.create_task_group() as tasks:
                    self._tasks = tasks
                    tasks.start_soon(self._gauge_poller.run)
                    await serve(application(self, self._registry), bound, task_status)
            finally:
                self._tasks = None
                self._registry.unregister(self._gauge_poller)
                instruments.disable_metrics()
