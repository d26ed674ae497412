"""The page of spending and limits: everybody's own, and all of it for owners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from bot.agent.spending.texts import role_text
from bot.core.i18n import _, pgettext
from bot.inspector.dependencies import Member, WebContextDep
from bot.inspector.numbers import count, dollars, short_day
from bot.inspector.plots import Plot, Series
from bot.inspector.reading.spending import (
    SpendingView,
    SpentAmount,
    SpentDay,
    own_spending,
    workspace_spending,
)
from bot.inspector.rendering import render_page

router = APIRouter(include_in_schema=False)

_DAYS = 30
_SERIES = 6

Whose = Annotated[Literal["own", "all"], Query(description="Whose spending.")]  # for programs


@router.get("/budget")
async def budget(
    *, request: Request, web: WebContextDep, visitor: Member, whose: Whose = "own"
) -> HTMLResponse:
    """Render one's own spending; for owners also everybody's."""
    if whose == "all" and visitor.role == "owner":
        found: SpendingView = (whole := await workspace_spending(web, _DAYS))
        roles = [row.model_copy(update={"name": _role(row.name)}) for row in whole.roles]
        tables = [
            (_("By person"), _("Person"), whole.people, _("nobody in particular")),
            (_("By conversation"), _("Conversation"), whole.chats, _("outside of conversations")),
            (_("By use"), pgettext("model", "Use"), roles, ""),
            (_("By model"), _("Model"), whole.models, ""),
        ]
    else:
        whose, tables = "own", []
        found = await own_spending(web, visitor, _DAYS)
    return render_page(
        request,
        "budget.html",
        visitor,
        found=found,
        whose=whose,
        tables=tables,
        plots=_plots(found.days),
        money=money,
    )


def money(amount: SpentAmount) -> str:
    """Format what was used in US dollars, with what is assumed."""
    return dollars(amount.cost + amount.assumed)


def _role(name: str) -> str:
    return role_text(name).strip("`")


def _plots(days: Sequence[SpentDay]) -> list[Plot]:
    labels = [short_day(day.day) for day in days]
    spent = sum(one.cost + one.assumed for day in days for one in day.roles.values())
    tokens = sum(one.tokens for day in days for one in day.roles.values())
    return [
        Plot(
            "spent",
            _("Cost by use"),
            _("{amount} in these days, assumed prices included.", amount=dollars(spent)),
            labels,
            _series(days, tokens=False),
            dollars,
        ),
        Plot(
            "spent-tokens",
            _("Tokens by use"),
            _("{number} tokens in these days.", number=count(tokens)),
            labels,
            _series(days, tokens=True),
            count,
            whole=True,
        ),
    ]


def _series(days: Sequence[SpentDay], *, tokens: bool) -> tuple[Series, ...]:
    """Return a series for each use that has a colour of its own, the most expensive first."""

    def value(amount: SpentAmount) -> float:
        return amount.tokens if tokens else amount.cost + amount.assumed

    roles = _roles(days)
    named = roles if len(roles) <= _SERIES else roles[: _SERIES - 1]
    made = [
        Series(_role(role), [value(day.roles[role]) if role in day.roles else 0 for day in days])
        for role in named
    ]
    if len(named) < len(roles):
        rest = [
            sum(value(amount) for role, amount in day.roles.items() if role not in named)
            for day in days
        ]
        made.append(Series(_("others"), rest))
    return tuple(made)


def _roles(days: Sequence[SpentDay]) -> list[str]:
    """Return the roles, the most expensive first: the same order and colours in all plots."""
    sums: dict[str, tuple[float, int]] = {}
    for day in days:
        for role, amount in day.roles.items():
            money, tokens = sums.get(role, (0.0, 0))
            sums[role] = (money + amount.cost + amount.assumed, tokens + amount.tokens)
    return sorted(sums, key=lambda role: (sums[role], role), reverse=True)
