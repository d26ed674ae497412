"""``/status``: the state of this session, in plain words."""

from __future__ import annotations

from bot.agent.commands.registry import Command, CommandContext, CommandReply


async def _run(_: str, context: CommandContext) -> CommandReply:
    info = await context.tape.info()
    fold = context.fold
    usage = fold.turns.usage
    cost = "price unknown" if usage.cost is None else f"${usage.cost:.4f}"
    sealed = f", {info.segments} sealed segments" if info.segments else ""
    lines = [
        f"- Model: {context.model_line()}",
        f"- Session: `{info.name}`, {fold.turns.turns} turns",
        f"- Tape: {info.entries} entries{sealed}",
        f"- In view: {fold.window.messages} messages; unconsolidated: {fold.window.unconsolidated}",
        f"- Consolidation: {context.consolidation_line()}",
        f"- Memory: version {context.zone.read().version}",
        f"- Usage: {usage.calls} model calls, {usage.prompt_tokens} tokens read "
        f"({usage.cached_tokens} cached), {usage.completion_tokens} written, {cost}",
    ]
    return CommandReply("\n".join(lines))


STATUS = Command("status", "show the model, this session, its memory and usage", (), _run)
