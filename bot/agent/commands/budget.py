"""``/budget``: what models cost, and limits on it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.agent.commands.parser import split_form
from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.agent.spending.decision import period_name
from bot.agent.spending.report import (
    BREAKDOWNS,
    EVERYBODY,
    SpendingRow,
    breakdown,
    person_scopes,
    totals,
)
from bot.agent.spending.spending import Spending
from bot.agent.spending.texts import (
    ROLES,
    amount_text,
    limit_text,
    money_text,
    use_text,
)
from bot.bus import Address, Button
from bot.core.errors import InvalidInbound
from bot.memory.records.spending_amounts import EACH, EVERYONE, NANO, Limit, Period, Unit

_NOT_KEPT = "Spending is not counted here."
_OWNERS = "Only an owner may do this. `/budget` shows what you used."
_IN_PRIVATE = "Send this in our private chat: it shows what each person used."
_AMOUNT = re.compile(r"(\$?)(\d{1,12}(?:[.,]\d{1,6})?)(k|m)?(\$|usd|tokens?)?")
_MOST_ROWS = 15
_MANY = {"": 1, "k": 1_000, "m": 1_000_000}


async def _budget(arguments: str, context: CommandContext) -> CommandReply:
    spending = context.spending
    if spending is None:
        return CommandReply(_NOT_KEPT)
    await spending.refresh()
    word, rest = split_form(arguments)
    if not word:
        return _mine(spending, context)
    if word not in ("all", "set", "rate", "off"):
        return CommandReply(BUDGET_COMMAND.unknown_form_text(word, ("all", "set", "rate", "off")))
    if context.author.role != "owner":
        return CommandReply(_OWNERS)
    if word == "all":
        private = context.author.private
        return _everybody(spending) if private else CommandReply(_IN_PRIVATE)
    if word == "set":
        return await _set(rest, spending, context)
    if word == "rate":
        return await _rate(rest, spending)
    return await _off(rest, spending, context)


def _mine(spending: Spending, context: CommandContext) -> CommandReply:
    """Return what the author used, and what is left."""
    spender, day = context.spender, period_name("day", spending.now)
    mine = totals(spending.fold, person_scopes(spending.members(spender.identity)), day)
    lines = [
        f"- You, today: {amount_text(mine.today)}",
        f"- You, this month: {amount_text(mine.month)}",
    ]
    if not context.author.private:
        here = totals(spending.fold, [f"session:{spender.session}"], day)
        lines.append(f"- This chat, this month: {amount_text(here.month)}")
    uses = spending.uses(spender)
    lines += [f"- Limit: {use_text(use)}" for use in uses]
    if not uses:
        lines.append("- No limit holds for you here.")
    buttons: tuple[Button, ...] = ()
    if context.author.role == "owner" and context.author.private:
        buttons = (Button("Everybody", "/budget all"),)
    return CommandReply("\n".join(lines), buttons=buttons)


async def budget_line(context: CommandContext) -> str | None:
    """Return what the author used and has left in one line; None if nothing is counted."""
    spending = context.spending
    if spending is None:
        return None
    await spending.refresh()
    spender, day = context.spender, period_name("day", spending.now)
    mine = totals(spending.fold, person_scopes(spending.members(spender.identity)), day)
    uses = spending.uses(spender)
    limit = f"; {use_text(min(uses, key=lambda use: use.left / use.limit.amount))}" if uses else ""
    return f"you used {money_text(mine.today.money)} today{limit}"


def _everybody(spending: Spending) -> CommandReply:
    """Return what the workspace used, by person, chat, role and model, and its limits."""
    fold, day = spending.fold, period_name("day", spending.now)
    whole = totals(fold, EVERYBODY, day)
    lines = [
        f"**Everybody, today:** {amount_text(whole.today)}",
        f"**Everybody, this month:** {amount_text(whole.month)}",
    ]
    for by in BREAKDOWNS:
        lines += ["", f"By {by} (today, this month):"]
        rows = breakdown(fold, by, day)
        lines += [f"- {_row(by, row)}" for row in rows[:_MOST_ROWS]] or ["- nothing yet"]
        if len(rows) > _MOST_ROWS:
            lines.append(f"- … and {len(rows) - _MOST_ROWS} more; the site shows all")
    lines += ["", "Limits:", *(f"- {limit_text(one)}" for one in fold.limits.values())]
    if not fold.limits:
        lines.append("- none; `/budget set everyone 5$ day` sets one")
    buttons = [
        Button(f"Remove {limit_text(one)}"[:60], f"/budget off {_target(one)} {one.period}")
        for one in list(fold.limits.values())[:5]
    ]
    return CommandReply("\n".join(lines), buttons=tuple(buttons))


def _row(by: str, row: SpendingRow) -> str:
    name = ROLES.get(row.name, row.name) if by == "role" else row.name and f"`{row.name}`"
    tokens = f"{row.month.tokens:,} tokens"
    nobody = "nobody in particular" if by == "person" else "outside of conversations"
    return (
        f"{name or nobody}: {money_text(row.today.money)}, {money_text(row.month.money)} ({tokens})"
    )


async def _set(rest: str, spending: Spending, context: CommandContext) -> CommandReply:
    words = rest.split()
    if len(words) != 3:
        return CommandReply(BUDGET_COMMAND.usage)
    scope = _scope(words[0], context)
    amount = _amount(words[1])
    period = _period(words[2])
    if scope is None:
        return CommandReply(_unknown_scope(words[0]))
    if amount is None or period is None:
        wrong = words[1] if amount is None else words[2]
        return CommandReply(
            f"I do not understand `{wrong[:40]}`. Amounts are like `5$` or `200k`, periods are "
            "`day` and `month`."
        )
    limit = Limit(scope, period, *amount)
    await spending.set_limit(limit)
    return CommandReply(
        f"Limit set: {limit_text(limit)}. At 80 % people are told once, and background work waits; "
        "at 100 % a model on this machine answers, or none.",
        buttons=(Button("Remove it", f"/budget off {_target(limit)} {period}"),),
    )


async def _rate(rest: str, spending: Spending) -> CommandReply:
    if not rest.isascii() or not rest.isdecimal() or int(rest[:6]) == 0 or len(rest) > 6:
        return CommandReply(BUDGET_COMMAND.usage)
    limit = Limit(EACH, "minute", "requests", int(rest))
    await spending.set_limit(limit)
    return CommandReply(f"Limit set: {limit_text(limit)}.")


async def _off(rest: str, spending: Spending, context: CommandContext) -> CommandReply:
    words = rest.split()
    if not words or len(words) > 2:
        return CommandReply(BUDGET_COMMAND.usage)
    limits: Sequence[Limit] = list(spending.fold.limits.values())
    if words[0] == "rate":
        found = [one for one in limits if one.unit == "requests"]
    elif words[0] == "all":
        found = list(limits)
    elif (scope := _scope(words[0], context)) is None:
        return CommandReply(_unknown_scope(words[0]))
    else:
        found = [one for one in limits if one.scope == scope and one.unit != "requests"]
    if len(words) == 2 and (period := _period(words[1])) is not None:
        found = [one for one in found if one.period == period]
    for limit in found:
        await spending.set_limit(Limit(limit.scope, limit.period, limit.unit, 0))
    if not found:
        return CommandReply("There is no such limit. `/budget all` lists them.")
    return CommandReply("Removed: " + "; ".join(map(limit_text, found)) + ".")


def _scope(word: str, context: CommandContext) -> str | None:
    """Return the scope that a word names; None if it names none."""
    lowered = word.lower()
    if lowered in (EVERYONE, EACH):
        return lowered
    if lowered == "here":
        return f"session:{context.tape.name}"
    kind, _, name = word.partition(":")
    if kind.lower() == "role":
        return f"role:{name}" if name in ROLES else None
    if kind.lower() in ("person", "session") and name:
        return f"{kind.lower()}:{name}" if _is_address(name) else None
    return f"person:{word}" if _is_address(word) else None


def _is_address(text: str) -> bool:
    try:
        Address.parse(text)
    except InvalidInbound:
        return False
    return True


def _unknown_scope(word: str) -> str:
    return (
        f"I do not know `{word[:60]}`. Say `everyone`, `each`, `here`, a person such as "
        f"`telegram:42`, or `role:NAME` with one of: {', '.join(ROLES)}."
    )


def _amount(word: str) -> tuple[Unit, int] | None:
    """Return unit and amount, such as ``5$`` or ``200k``; None if it is neither."""
    match = _AMOUNT.fullmatch(word.lower())
    if match is None:
        return None
    before, digits, many, after = match.groups(default="")
    number = float(digits.replace(",", ".")) * _MANY[many]
    if before or after in ("$", "usd"):
        return ("usd", round(number * NANO)) if 0 < number < 1e6 and after != "tokens" else None
    return ("tokens", round(number)) if 1 <= number < 1e15 else None


def _period(word: str) -> Period | None:
    lowered = word.lower()
    if lowered in ("day", "daily"):
        return "day"
    return "month" if lowered in ("month", "monthly") else None


def _target(limit: Limit) -> str:
    """Return the words that name a limit in a command."""
    if limit.unit == "requests":
        return "rate"
    return limit.scope


BUDGET_COMMAND = Command(
    "budget",
    "show what models cost, and limit it",
    (
        ("", "what you used today and this month, and what is left"),
        ("all", "what everybody used, and the limits (owners)"),
        (
            "set everyone|each|ID|here AMOUNT day|month",
            "limit it, such as `5$` or `200k` tokens (owners)",
        ),
        ("rate N", "each person may ask N times a minute (owners)"),
        ("off everyone|each|ID|here|rate|all", "remove a limit (owners)"),
    ),
    _budget,
)
