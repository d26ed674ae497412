"""``/memory share N`` and ``/memory unshare wN``: what everybody reads who talks to this bot."""

from __future__ import annotations

from bot.agent.commands.memory.changing import DONE
from bot.agent.commands.memory.numbers import fact_of, key_of, missing, number_in
from bot.agent.commands.memory.rights import OWNERS_ONLY
from bot.agent.commands.memory.wording import line
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.memory.facts.proposals import Batch, Proposal


async def share(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory share N``."""
    if context.asker.role != "owner":
        return CommandReply(OWNERS_ONLY)
    number = number_in(arguments.strip())
    if number is None:
        return CommandReply("Which one? For example: `/memory share 3`.")
    fact = fact_of(number, context)
    if fact is None:
        return CommandReply(missing(number, context))
    if number.shared:
        still = "already" if fact.status == "active" else "no longer"
        return CommandReply(f"It is shared {still}: {line(fact, shared=True)}")
    workspace, key = context.memory.workspace, key_of(context)
    if fact.status != "active" and key not in workspace.fold.keys:
        return CommandReply(f"It is not believed here, so it is not shared: {line(fact)}")
    proposal = Proposal("add", fact.text, subject=fact.subject, evidence=fact.evidence)
    outcome = await workspace.apply(Batch(key, "person", (proposal,), asker=context.asker.id))
    if not outcome.decided:
        return CommandReply(DONE, change=context.memory.current)
    decided = outcome.decided[0]  # Behind it is what else it ended.
    if decided.fact is None or decided.verdict in ("refused", "logged"):
        return CommandReply(f"Not shared: {decided.reason}.")
    copy = line(decided.fact, shared=True)
    if decided.fact.admitted != outcome.entry:
        return CommandReply(f"It is shared already: {copy}", change=context.memory.current)
    return CommandReply(
        f"Shared: {copy}\nEverybody who talks to this bot will see it, in every chat. "
        f"`/memory unshare w{decided.fact.id}` takes it back.",
        change=context.memory.current,
    )


async def unshare(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory unshare wN``."""
    if context.asker.role != "owner":
        return CommandReply(OWNERS_ONLY)
    number = number_in(arguments.strip())
    if number is None or not number.shared:
        return CommandReply("Which one? For example: `/memory unshare w3`. `/memory` lists them.")
    if fact_of(number, context) is None:
        return CommandReply(missing(number, context))
    proposal = Proposal("retire", fact=number.id)
    batch = Batch(key_of(context), "person", (proposal,), asker=context.asker.id)
    outcome = await context.memory.workspace.apply(batch)
    told = DONE
    for one in outcome.decided:
        if one.fact is not None:
            took = one.verdict == "approved"
            told = f"{'No longer shared' if took else 'It was not shared'}: {line(one.fact, shared=True)}"
    return CommandReply(told, change=context.memory.current)
