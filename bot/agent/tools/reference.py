"""``memory.refer``: read a shared reference value, or set it if the user's words support it."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome, trim_schema, unoffered
from bot.core.errors import MemoryRefused
from bot.memory.gate.reference_values import (
    check_key,
    check_no_secret_value,
    check_value,
    parse_value,
    texts_in_value,
)
from bot.memory.gate.write_result import WriteResult
from bot.memory.records.episodes import episode_id
from bot.memory.records.evidence import sender_text
from bot.memory.records.quote_spans import find_quote

_FEW_KEYS = 40


class ReferArguments(BaseModel):
    """Arguments of ``memory.refer``."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=trim_schema)

    key: str = Field(min_length=1, max_length=64)
    # The schema says string, which every provider accepts; other JSON values are accepted as well.
    value: Annotated[Any, WithJsonSchema({"type": "string"})] = Field(
        None, description="to set; lists as JSON"
    )


async def _refer(arguments: ReferArguments, context: ToolContext) -> ToolOutcome:
    if arguments.value is None:
        return ToolOutcome(await _read(arguments.key, context))
    context.check_learning()
    context.check_rights("change it, with `/reference set`")
    if not context.answered_messages:
        raise MemoryRefused("no message of the user is being answered that it could rest on")
    key, value = check_key(arguments.key), arguments.value
    value = check_value(key, parse_value(key, value) if isinstance(value, str) else value)
    check_no_secret_value(key, value)
    current = await context.memory.bus.shared.get(key)
    if current is not None and current.value == value:
        return ToolOutcome(f"{key} says exactly this already (version {current.version}).")
    written = await context.memory.bus.write_to_shared(
        key, value, _grounds(key, value, context), by="assistant", cause=context.cause
    )
    status = "ok" if written else "error"
    return ToolOutcome(_told(key, written), status, zone_edit=context.memory.with_current_facts)


def _grounds(key: str, value: Any, context: ToolContext) -> str:
    """Return the id of the answered message that has most of the value's texts verbatim."""
    wanted = [key, *texts_in_value(value)]
    best = max(
        context.answered_messages,
        key=lambda entry: (
            sum(find_quote(text, sender_text(entry)) is not None for text in wanted),
            entry.id,
        ),
    )
    return episode_id(context.tape.name, best.id)


async def _read(key: str, context: ToolContext) -> str:
    bus = context.memory.bus
    for store in (bus.shared, bus.shared_workspace):
        if (reference := await store.get(key)) is not None:
            value = json.dumps(reference.value, ensure_ascii=False)
            return f"{key} = {value} {await store.cite(key)}"
    keys = {*await bus.shared.keys(), *await bus.shared_workspace.keys()}
    known = ", ".join(sorted(keys)[:_FEW_KEYS]) or "none"
    return f"There is no {key!r}. The keys are: {known}."


def _told(key: str, written: WriteResult) -> str:
    """Return the outcome of a write as a text for the model."""
    if written:
        return f"{key} is set (version {written.id})."
    can = "" if written.is_assumption else f" The user can: `/reference set {key} …`."
    return f"Not set: {written.explanation}{can}"


REFERENCE_TOOL = Tool(
    "memory.refer",
    "Read or, as the user says, set an exact value: deadline, glossary, north_stars, priorities.",
    ReferArguments,
    _refer,
    unoffered,
    effect="writes_own",
)
