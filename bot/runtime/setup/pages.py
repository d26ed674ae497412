"""The site's pages of the setup: the steps, one form for each.

Rule 1: a secret is never in a page, not even one that was just typed.
Rule 2: only a person in a browser may change settings, no program with a token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio.to_thread
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from bot.bus import WebUser
from bot.core.errors import HttpError, SettingsError, TapebotError
from bot.core.i18n import _
from bot.inspector.access.origin import fields
from bot.inspector.dependencies import WebContextDep, require_member, require_owner, require_person
from bot.inspector.rendering import render_page
from bot.runtime.settings import Settings, load_settings
from bot.runtime.setup.checks import Outcome
from bot.runtime.setup.config_files import Written
from bot.runtime.setup.next_steps import next_steps
from bot.runtime.setup.setup import REMOVE, Setup
from bot.runtime.setup.steps import STEPS, Step

Guard = Callable[..., Awaitable[None]]
"""A FastAPI dependency that raises ``HttpError`` for those who may not change settings."""


@dataclass(slots=True)
class _Form:
    """One step as its page shows it.

    Attributes:
        values: What stands in the fields; never a secret.
        errors: What is wrong, by field.
        outcome: What the check found, once there was one.
        written: Where the answers were saved, if they were.
    """

    values: dict[str, str]
    errors: dict[str, str] = field(default_factory=dict)
    outcome: Outcome | None = None
    written: Written | None = None


async def require_owner_in_browser(request: Request, web: WebContextDep) -> None:
    """Let an owner in who is logged in, and note them as the request's visitor.

    Raises:
        HttpError: Nobody is, they are no owner, or it is a program.
    """
    visitor = await require_person(await require_member(request, web))
    request.state.visitor = await require_owner(visitor)


def setup_router(settings: Settings, guard: Guard, *, ends: bool = False) -> APIRouter:
    """Return the routes of the setup.

    Args:
        settings: They locate the home; all else is read anew for each page.
        guard: Decides who may change settings.
        ends: Whether the pages are served for the setup alone, and end with it.
    """
    router = APIRouter(include_in_schema=False, dependencies=[Depends(guard)])

    @router.get("/setup")
    async def overview_page(request: Request) -> HTMLResponse:
        """Render the steps, and what to do next."""
        setup = await _open(settings)
        return render_page(
            request,
            "setup.html",
            _visitor(request),
            steps=[(step, setup.status(step)) for step in STEPS],
            next_steps=await next_steps(setup),
            ends=ends,
        )

    @router.get("/setup/{name}")
    async def step_page(request: Request, name: str) -> HTMLResponse:
        """Render one step's form."""
        step, setup = _step(name), await _open(settings)
        return await _render(request, setup, step, _Form(_values(setup, step)))

    @router.post("/setup/{name}")
    async def change(request: Request, name: str) -> HTMLResponse:
        """Try the answers, and save them if they work."""
        step, setup = _step(name), await _open(settings)
        form = await _submit(setup, step, await fields(request))
        return await _render(request, setup, step, form)

    return router


def _visitor(request: Request) -> WebUser | None:
    visitor: WebUser | None = getattr(request.state, "visitor", None)
    return visitor


async def _open(settings: Settings) -> Setup:
    def read() -> Setup:
        return Setup(load_settings(home=settings.home))

    return await anyio.to_thread.run_sync(read)


def _step(name: str) -> Step:
    step = next((step for step in STEPS if step.name == name), None)
    if step is None:
        raise HttpError(404, "not_found", _("There is no such step."))
    return step


def _values(setup: Setup, step: Step) -> dict[str, str]:
    return {question.field: setup.value(question) for question in step.questions}


async def _submit(setup: Setup, step: Step, given: dict[str, str]) -> _Form:
    """Check a form's answers, and save them if they work or shall be saved all the same."""
    form = _Form(_values(setup, step))
    answers = await anyio.to_thread.run_sync(_parse, setup, step, given, form)
    if form.errors:
        return form
    changed = setup.changes(step, answers)
    if not changed and not step.always:
        form.outcome = Outcome(True, _("Nothing was changed."))
        return form
    try:
        form.outcome = await setup.check(step, changed)
        if changed and (form.outcome.works or given.get("anyway") == "on"):
            form.written = await anyio.to_thread.run_sync(setup.save, step, changed)
            form.values = _values(setup, step)
    except TapebotError as error:
        form.outcome = Outcome(False, f"{error}")
    except OSError as error:
        form.outcome = Outcome(False, _("It cannot be saved: {why}.", why=error.strerror))
    return form


def _parse(setup: Setup, step: Step, given: dict[str, str], form: _Form) -> dict[str, str | None]:
    """Return the answers of a form; note its values and errors."""
    answers: dict[str, str | None] = {}
    for question in step.questions:
        name = question.field
        text = given.get(name, "").strip()
        if question.secret and not text:
            continue  # an empty field keeps what is set
        if not question.secret:
            form.values[name] = text
        try:
            answers[name] = setup.parse(question, text) if text else None
        except SettingsError as error:
            form.errors[name] = str(error)
    return setup.without_old_address(answers)


async def _render(request: Request, setup: Setup, step: Step, form: _Form) -> HTMLResponse:
    if step.name == "model":
        await setup.look_around()
    place = STEPS.index(step)
    failed = bool(form.errors) or (form.outcome is not None and not form.outcome.works)
    return render_page(
        request,
        "setup_step.html",
        _visitor(request),
        status=422 if failed and form.written is None else 200,
        steps=STEPS,
        step=step,
        before=STEPS[place - 1] if place else None,
        after=STEPS[place + 1] if place + 1 < len(STEPS) else None,
        questions=[
            (question, question.choices(setup), question.secret and setup.is_set(question, {}))
            for question in step.questions
        ],
        form=form,
        failed=failed,
        remove=REMOVE,
    )
