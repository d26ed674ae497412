"""What models cost: for one person, and for owners by person, chat, role and model."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import Field

from bot.agent.spending.decision import LimitUse, period_name
from bot.agent.spending.report import (
    EVERYBODY,
    SpendingRow,
    breakdown,
    by_day,
    person_scopes,
    totals,
)
from bot.agent.spending.spending import Spending
from bot.agent.spending.texts import limit_text, use_text
from bot.bus import WEB_CHANNEL, WebUser
from bot.core.errors import HttpError
from bot.core.i18n import _
from bot.inspector.dependencies import WebContext
from bot.inspector.reading import ReadModel
from bot.llm.spender import Spender
from bot.memory.records.spending import MAX_DAYS
from bot.memory.records.spending_amounts import NANO, Amount


class SpentAmount(ReadModel):
    """What was used."""

    calls: int = Field(description="Calls of models.")
    tokens: int = Field(description="Tokens read and written.")
    cost: float = Field(description="US dollars, as far as prices are known.")
    assumed: float = Field(description="US dollars assumed for calls without a known price.")


class SpentDay(ReadModel):
    """What was used on a day."""

    day: str = Field(description="The day, in the workspace's time zone.")
    roles: dict[str, SpentAmount] = Field(description="By what calls were for, such as `turn`.")


class SpentRow(ReadModel):
    """What one person, chat, role or model used."""

    name: str = Field(description="Its name; empty for what belongs to none.")
    today: SpentAmount
    month: SpentAmount


class LimitView(ReadModel):
    """A limit."""

    key: str = Field(description="Scope, period and unit.")
    text: str = Field(description="The limit in words.")
    used: str | None = Field(default=None, description="How much of it is used, in words.")


class SpendingView(ReadModel):
    """What a person used."""

    timezone: str = Field(description="The time zone of days and months.")
    today: SpentAmount
    month: SpentAmount
    days: list[SpentDay] = Field(description="The newest days, oldest first.")
    limits: list[LimitView] = Field(description="The limits that hold for the person.")


class WorkspaceSpending(SpendingView):
    """What everybody used, and all limits."""

    people: list[SpentRow]
    chats: list[SpentRow]
    roles: list[SpentRow]
    models: list[SpentRow]


async def own_spending(web: WebContext, visitor: WebUser, days: int) -> SpendingView:
    """Return what a visitor used, on all channels that are linked to the site."""
    spending = await _fresh(web)
    identity = f"{WEB_CHANNEL}:{visitor.id}"
    spender = Spender(identity, visitor.address.session, owner=visitor.role == "owner")
    people = spending.members(identity)
    limits = [_limit_view(use) for use in spending.uses(spender)]
    whole = totals(spending.fold, person_scopes(people), _today(spending))
    return SpendingView(
        timezone=web.agent.timezone_name,
        today=_amount(whole.today),
        month=_amount(whole.month),
        days=_days(spending, people, days),
        limits=limits,
    )


async def workspace_spending(web: WebContext, days: int) -> WorkspaceSpending:
    """Return what everybody used."""
    spending = await _fresh(web)
    fold, today = spending.fold, _today(spending)
    whole = totals(fold, EVERYBODY, today)

    def rows(by: str) -> list[SpentRow]:
        return [_row(row) for row in breakdown(fold, by, today)]

    return WorkspaceSpending(
        timezone=web.agent.timezone_name,
        today=_amount(whole.today),
        month=_amount(whole.month),
        days=_days(spending, None, days),
        limits=[LimitView(key=one.key, text=limit_text(one)) for one in fold.limits.values()],
        people=rows("person"),
        chats=rows("chat"),
        roles=rows("role"),
        models=rows("model"),
    )


async def _fresh(web: WebContext) -> Spending:
    spending = web.agent.spending
    if spending is None:
        raise HttpError(404, "not_counted", _("spending is not counted here"))
    await web.scopes.identity_linker.open()
    await spending.refresh()
    return spending


def _today(spending: Spending) -> str:
    return period_name("day", spending.now)


def _days(spending: Spending, people: Collection[str] | None, days: int) -> list[SpentDay]:
    newest = min(days, MAX_DAYS)
    return [
        SpentDay(day=day, roles={role: _amount(amount) for role, amount in roles.items()})
        for day, roles in by_day(spending.fold, people, _today(spending), newest)
    ]


def _row(row: SpendingRow) -> SpentRow:
    return SpentRow(name=row.name, today=_amount(row.today), month=_amount(row.month))


def _amount(amount: Amount) -> SpentAmount:
    return SpentAmount(
        calls=amount.calls,
        tokens=amount.tokens,
        cost=amount.cost / NANO,
        assumed=amount.assumed / NANO,
    )


def _limit_view(use: LimitUse) -> LimitView:
    return LimitView(key=use.limit.key, text=limit_text(use.limit), used=use_text(use))
