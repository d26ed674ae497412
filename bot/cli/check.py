"""``tapebot doctor``."""

from __future__ import annotations

import anyio

from bot.cli.doctor import examine, exit_code, report
from bot.core.errors import SettingsError
from bot.runtime.settings import Settings, export_dotenv, load_settings


def check(*, probe: bool) -> int:
    """Print what is well and what to mend; return 1 where something is bad."""
    return anyio.run(_check, probe)


async def _check(probe: bool) -> int:
    settings: Settings | SettingsError
    try:
        export_dotenv()
        settings = load_settings()
    except SettingsError as error:
        settings = error

    async def answer() -> str:
        from bot.llm.base import ModelRequest
        from bot.runtime.app import make_model

        assert isinstance(settings, Settings)
        model = make_model(settings)
        try:
            request = ModelRequest([{"role": "user", "content": "Answer with one word: ready"}])
            return (await model.complete(request)).content
        finally:
            await model.aclose()

    findings = await examine(settings, probe=answer if probe else None)
    print(report(findings))
    return exit_code(findings)
