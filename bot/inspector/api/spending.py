"""API routes of spending: one's own for everybody, all of it for owners."""

from __future__ import annotations

from fastapi import APIRouter

from bot.inspector.dependencies import Member, Owner, WebContextDep
from bot.inspector.parameters import API, Days
from bot.inspector.reading.spending import (
    SpendingView,
    WorkspaceSpending,
    own_spending,
    workspace_spending,
)

router = APIRouter(prefix=API)


@router.get("/spending", tags=["spending"])
async def get_own_spending(web: WebContextDep, visitor: Member, days: Days = 30) -> SpendingView:
    """Return what the models cost that were called for you; days are kept for two months."""
    return await own_spending(web, visitor, days)


@router.get("/spending/all", tags=["spending"])
async def get_all_spending(
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001 (only owners may)
    days: Days = 30,
) -> WorkspaceSpending:
    """Return what models cost by person, chat, role and model, and all limits.

    Commands change limits: `/budget set everyone 5$ day`, `/budget off everyone day`.
    """
    return await workspace_spending(web, days)
