"""What whoever operates the program asks of it: metrics, whether it lives, whether it can work."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version

import anyio
from anyio.abc import TaskGroup, TaskStatus

from bot.core.telemetry import instruments
from bot.core.telemetry.health import SECONDS, CheckFunction, HealthCheck, HealthCheckResult
from bot.core.telemetry.instruments import MetricSample, SampledMetric
from bot.core.telemetry.metrics import CONSOLIDATION_BACKLOG
from bot.core.telemetry.sampling import EVERY, Read, Sampler

_STARTED = SampledMetric(
    "tapebot_start_time_seconds", "When the process was set up, since the epoch."
)
_STARTING = "it is starting"
_INFO = SampledMetric("tapebot_info", "Which tapebot this is.", ("version", "role"))


class MonitoringServer:
    """Registers what can be asked, and answers over HTTP while it runs.

    From when it is made until ``run`` ends, everything in ``bot.core.telemetry.metrics`` counts.

    Args:
        role: What this process is: ``gateway``, ``worker`` or ``both``.

    Raises:
        SettingsError: The packages for it are missing.
    """

    def __init__(self, role: str = "both") -> None:
        self._registry = instruments.enable_metrics()
        self._checks: list[HealthCheck] = []
        self._sampler = Sampler()
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

    # What can be asked.

    def check(
        self, name: str, ask: CheckFunction, *, alive: bool = False, seconds: float = SECONDS
    ) -> None:
        """Add a check: part of ``/readyz``, and with ``alive`` of ``/healthz``, too.

        Args:
            name: One of few, for people and as a label.
            ask: Returns why something is not well, None where it is. What it raises is a reason as
                well; of foreign errors only the kind is shown.
            alive: A new process would help where this fails.
            seconds: An answer later than this is a failure.
        """
        self._checks.append(HealthCheck(name, ask, alive=alive, seconds=seconds))

    def sample(self, name: str, read: Read, *, every: float = EVERY) -> None:
        """Add values that have to be asked for; before ``run``.

        Args:
            name: One of few, for people and as a label.
            read: Asks.
            every: Seconds between two times.
        """
        self._sampler.add(name, read, every)

    def set_unready(self, reason: str | None) -> None:
        """Be ready for nothing, since it drains; or with None as far as the checks say so.

        Until the first call it is starting. That tasks end while it drains is as it should be.
        """
        self._unready = reason

    async def run_critical(self, name: str, job: Callable[[], Awaitable[object]]) -> None:
        """Run one of the program's own tasks; once it has ended, the process is not alive any more."""
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

    # Answers.

    async def check_results(self, *, alive: bool) -> list[HealthCheckResult]:
        """Ask all checks at once; with ``alive`` only those of the process itself."""
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
            for place, check in enumerate(asked):
                asking.start_soon(ask, place, check)
        return own + [found[place] for place in range(len(asked))]

    async def run(
        self,
        host: str,
        port: int,
        *,
        task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Answer over HTTP until cancelled; ``tasks.start`` returns the address that does.

        Raises:
            SettingsError: It cannot listen there; most often another program has the port.
        """
        from bot.core.telemetry.monitoring_http import application, bound_socket, serve

        with bound_socket(host, port) as bound:
            self._registry.register(self._sampler)
            try:
                async with anyio.create_task_group() as tasks:
                    self._tasks = tasks
                    tasks.start_soon(self._sampler.run)
                    await serve(application(self, self._registry), bound, task_status)
            finally:
                self._tasks = None
                self._registry.unregister(self._sampler)
                instruments.disable_metrics()
