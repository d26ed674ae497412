"""Asks a program over a socket how it is."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import httpx
from prometheus_client.parser import text_string_to_metric_families
from waiting import until

from bot.core.telemetry.monitoring import MonitoringServer


class Series(dict):
    def __getitem__(self, key: tuple) -> float:
        return super().__getitem__((key[0], *sorted(key[1:])))


class Client:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def get(self, path: str) -> tuple[int, dict]:
        answer = await self._http.get(path)
        return answer.status_code, answer.json()["checks"]

    async def text(self) -> str:
        answer = await self._http.get("/metrics")
        assert answer.status_code == 200
        return answer.text

    async def series(self) -> Series:
        return Series(
            ((one.name, *sorted(one.labels.values())), one.value)
            for family in text_string_to_metric_families(await self.text())
            for one in family.samples
        )

    async def until(self, path: str, status: int) -> dict:
        """Wait for an answer of this status; return its checks."""

        async def answered() -> dict | None:
            found, checks = await self.get(path)
            return checks if found == status else None

        return await until(answered, every=0.02)


@asynccontextmanager
async def running(operations: MonitoringServer):
    async with anyio.create_task_group() as tasks:

        async def run(*, task_status):
            await operations.run("127.0.0.1:0", task_status=task_status)

        address = await tasks.start(run)
        async with httpx.AsyncClient(base_url=address, timeout=60) as http:
            yield Client(http)
        tasks.cancel_scope.cancel()
