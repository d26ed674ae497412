"""What a model was asked while a problem of a session was worked on."""

from __future__ import annotations

import json
from typing import Any

from bot.llm.base import ModelRequest
from bot.memory.session.state.fold_loader import load_fold
from bot.tape.service import TapeService
from bot.testing.host import Host
from bot.testing.scripted_model import ScriptedModel


def shown(request: ModelRequest) -> str:
    return json.dumps(list(request.messages), ensure_ascii=False, default=str)


def last(model: ScriptedModel) -> str:
    return shown(model.requests_for()[-1])


async def fold_of(host: Host, session: str = "fake:1") -> Any:
    return await load_fold(TapeService(host.store, session), max_messages=200, max_tokens=96_000)
