"""``/budget``: what models cost, and limits on it."""

from __future__ import annotations

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
    count_text,
    limit_text,
    money_text,
    role_text,
    use_text,
)
from bot.agent.texts import joined, joined_clauses
from bot.bus import Address, Button
from bot.core.errors import InvalidInbound
from bot.core.i18n import N_, _, ngettext
from bot.core.patterns import LazyPattern
from bot.memory.records.spending_amounts import EACH, EVERYONE, NANO, Limit, Period, Unit

_NOT_KEPT = N_("Spending is not counted here.")
_OWNERS = N_("Only an owner may do this. `/budget` shows what you used.")
_IN_PRIVATE = N_("Send this in our private chat: it shows what each person used.")
_BY = {
    "person": N_("By person (today, this month):"),
    "chat": N_("By chat (today, this month):"),
    "role": N_("By role (today, this month):"),
    "model": N_("By model (today, this month):"),
}
_AMOUNT = LazyPattern(r"(\$?)(\d{1,12}(?:[.,]\d{1,6})?)(k|m)?(\$|usd|tokens?)?")
_MOST_ROWS = 15
_MANY = {"": 1, "k": 1_000, "m": 1_000_000}


async def _budget(arguments: str, context: CommandContext) -> CommandReply:
    spending = context.spending
    if spending is None:
        return CommandReply(_(_NOT_KEPT))
    await spending.refresh()
    word, rest = split_form(arguments)
    if not word:
        return _mine(spending, context)
    if word not in ("all", "set", "rate", "off"):
        return CommandReply(BUDGET_COMMAND.unknown_form_text(word, ("all", "set", "rate", "off")))
    if context.author.role != "owner":
        return CommandReply(_(_OWNERS))
    if word == "all":
        private = context.author.private
        return _everybody(spending) if private else CommandReply(_(_IN_PRIVATE))
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
        _("You, today: {amount}", amount=amount_text(mine.today)),
        _("You, this month: {amount}", amount=amount_text(mine.month)),
    ]
    if not context.author.private:
        here = totals(spending.fold, [f"session:{spender.session}"], day)
        lines.append(_("This chat, this month: {amount}", amount=amount_text(here.month)))
    uses = spending.uses(spender)
    lines += [_("Limit: {use}", use=use_text(use)) for use in uses]
    if not uses:
        lines.append(_("No limit holds for you here."))
    buttons: tuple[Button, ...] = ()
    if context.author.role == "owner" and context.author.private:
        buttons = (Button(_("Everybody"), "/budget all"),)
    return CommandReply("\n".join(f"- {line}" for line in lines), buttons=buttons)


async def budget_line(context: CommandContext) -> str | None:
    """Return what the author used and has left in one line; None if nothing is counted."""
    spending = context.spending
    if spending is None:
        return None
    await spending.refresh()
    spender, day = context.spender, period_name("day", spending.now)
    mine = totals(spending.fold, person_scopes(spending.members(spender.identity)), day)
    uses = spending.uses(spender)
    used = _("you used {amount} today", amount=money_text(mine.today.money))
    closest = sorted(uses, key=lambda use: use.left / use.limit.amount)[:1]
    return joined_clauses([used, *map(use_text, closest)])


def _everybody(spending: Spending) -> CommandReply:
    """Return what the workspace used, by person, chat, role and model, and its limits."""
    fold, day = spending.fold, period_name("day", spending.now)
    whole = totals(fold, EVERYBODY, day)
    lines = [
        _("**Everybody, today:** {amount}", amount=amount_text(whole.today)),
        _("**Everybody, this month:** {amount}", amount=amount_text(whole.month)),
    ]
    for by in BREAKDOWNS:
        lines += ["", _(_BY[by])]
        rows = breakdown(fold, by, day)
        lines += [f"- {_row(by, row)}" for row in rows[:_MOST_ROWS]] or ["- " + _("nothing yet")]
        if len(rows) > _MOST_ROWS:
            more = ngettext(
                "… and {n} more; the site shows all",
                "… and {n} more; the site shows all",
                len(rows) - _MOST_ROWS,
            )
            lines.append(f"- {more}")
    lines += ["", _("Limits:"), *(f"- {limit_text(one)}" for one in fold.limits.values())]
    if not fold.limits:
        lines.append("- " + _("none; `/budget set everyone 5$ day` sets one"))
    buttons = [
        Button(
            _("Remove {limit}", limit=limit_text(one))[:60],
            f"/budget off {_named(one)}",
        )
        for one in list(fold.limits.values())[:5]
    ]
    return CommandReply("\n".join(lines), buttons=tuple(buttons))


def _row(by: str, row: SpendingRow) -> str:
    nobody = _("nobody in particular") if by == "person" else _("outside of conversations")
    name = role_text(row.name) if by == "role" else f"`{row.name}`"
    return _(
        "{name}: {today}, {month} ({tokens})",
        name=name if row.name else nobody,
        today=money_text(row.today.money),
        month=money_text(row.month.money),
        tokens=count_text(row.month.tokens, "tokens"),
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
            _(
                "I do not understand {word}. Amounts are like `5$` or `200k`, periods are `day` and "
                "`month`.",
                word=f"`{wrong[:40]}`",
            )
        )
    limit = Limit(scope, period, *amount)
    await spending.set_limit(limit)
    return CommandReply(
        _(
            "Limit set: {limit}. At 80 % people are told once, and background work waits; at 100 % a "
            "model on this machine answers, or none.",
            limit=limit_text(limit),
        ),
        buttons=(Button(_("Remove it"), f"/budget off {_named(limit)}"),),
    )


async def _rate(rest: str, spending: Spending) -> CommandReply:
    if not rest.isascii() or not rest.isdecimal() or int(rest[:6]) == 0 or len(rest) > 6:
        return CommandReply(BUDGET_COMMAND.usage)
    limit = Limit(EACH, "minute", "requests", int(rest))
    await spending.set_limit(limit)
    return CommandReply(_("Limit set: {limit}.", limit=limit_text(limit)))


async def _off(rest: str, spending: Spending, context: CommandContext) -> CommandReply:
    words = rest.split()
    if not words or len(words) > 3:
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
    if len(words) > 1 and (period := _period(words[1])) is not None:
        found = [one for one in found if one.period == period]
    if len(words) == 3:  # A button means the limit that it stands below, not a later one.
        found = [one for one in found if (one.unit, one.amount) == _amount(words[2])]
    for limit in found:
        await spending.set_limit(Limit(limit.scope, limit.period, limit.unit, 0))
    if not found:
        return CommandReply(_("There is no such limit. `/budget all` lists them."))
    return CommandReply(_("Removed: {limits}.", limits=joined_clauses(map(limit_text, found))))


def _scope(word: str, context: CommandContext) -> str | None:
    """Return the scope that a word names; None if it names none."""
    lowered = word.lower()
    if lowered in (EVERYONE, EACH):
        return lowered
    if lowered == "here":
        return f"session:{context.tape.name}"
    kind, _sep, name = word.partition(":")
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
    return _(
        "I do not know {word}. Say `everyone`, `each`, `here`, a person such as `telegram:42`, or "
        "`role:NAME` with one of: {names}.",
        word=f"`{word[:60]}`",
        names=joined(f"`{role}`" for role in ROLES),
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


def _named(limit: Limit) -> str:
    """Return the words that name a limit, and no later one in its place, in a command."""
    if limit.unit == "requests":
        return f"rate {limit.period}"  # for programs
    amount = f"{limit.amount / NANO:.9f}".rstrip("0").rstrip(".") + "$"
    return f"{limit.scope} {limit.period} {amount if limit.unit == 'usd' else limit.amount}"


BUDGET_COMMAND = Command(
    "budget",
    N_("show what models cost, and limit it"),
    (
        ("", N_("what you used today and this month, and what is left")),
        ("all", N_("what everybody used, and the limits (owners)")),
        (
            "set everyone|each|ID|here AMOUNT day|month",
            N_("limit it, such as `5$` or `200k` tokens (owners)"),
        ),
        ("rate N", N_("each person may ask N times a minute (owners)")),
        ("off everyone|each|ID|here|rate|all", N_("remove a limit (owners)")),
    ),
    _budget,
    reads=("", "all"),
)
