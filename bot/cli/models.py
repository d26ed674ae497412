"""``tapebot models``: call each configured model, and show what works.

Each model is called seven times, with few tokens; its fallbacks are not. The judge is tried on known claims.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio

from bot.agent.consolidation.judge_trial import JUDGES_FILE, JudgeTrials, failed_judge_text
from bot.core.errors import SettingsError
from bot.core.i18n import N_, _
from bot.core.installation import this_installation
from bot.core.telemetry.redaction import Redactor
from bot.llm.base import Model
from bot.llm.model_checks import ModelChecks, check_model
from bot.llm.presets import Preset
from bot.llm.prices import Price
from bot.runtime.app.models import Models, make_models
from bot.runtime.settings import Settings

_BEFORE = (N_("preset"), N_("model"))
_COLUMNS = (
    N_("answers"),
    N_("stream"),
    N_("tools"),
    N_("forced"),
    N_("json"),
    N_("images"),
    N_("usage"),
)
_AFTER = (N_("first text"), N_("price in/out"), N_("context"))
_MARKS = {True: N_("yes"), False: N_("no"), None: "-"}


def run_models(settings: Settings, name: str | None) -> int:
    """Print what the configured models can do; return 1 if tapebot will miss something."""
    models = make_models(without_fallbacks(settings))
    presets = list(models.presets)
    chosen = [preset for preset in presets if name in (None, preset.name)]
    if not chosen:
        known = ", ".join(preset.name for preset in presets)
        raise SettingsError(
            _("There is no model preset {name!r}; there are: {known}.", name=name, known=known)
        )
    # Retries are not news here: the table says what came of them.
    logging.getLogger("stamina").setLevel(logging.ERROR)
    judge = models.judge if name is None else None
    return anyio.run(_check, chosen, models, judge, settings)


def without_fallbacks(settings: Settings) -> Settings:
    """Return the settings with models that have no fallbacks."""
    models = {
        name: preset.model_copy(update={"fallbacks": ()})
        for name, preset in settings.models.items()
    }
    return settings.model_copy(update={"models": models, "fallback_models": ()})


async def _check(
    presets: Sequence[Preset], models: Models, judge: Model | None, settings: Settings
) -> int:
    redact = Redactor(settings.secrets())
    found: list[tuple[Preset, ModelChecks]] = []
    try:
        for preset in presets:
            checks = await check_model(preset.model, seconds=settings.model_timeout)
            found.append((preset, checks))
        lines, passed = ([], True) if judge is None else await _try_judge(judge, settings)
    finally:
        with anyio.CancelScope(shield=True):
            await models.aclose()
    print(this_installation().adapt(redact("\n".join([render_checks(found), *lines]))))
    bad = any(check.is_bad for _preset, checks in found for check in checks.checks)
    return int(bad or not passed)


async def _try_judge(judge: Model, settings: Settings) -> tuple[list[str], bool]:
    """Have the judge rule on known claims; return what came of it, in a line, and whether it passed."""
    trial, _usage = await JudgeTrials(settings.home / JUDGES_FILE).try_again(judge)
    if trial is None:
        return ["", _("The judge `{model}` gave no usable answer.", model=judge.name)], False
    if not trial.passed:
        return ["", failed_judge_text(judge.name, trial)], False
    text = _(
        "Judge: `{model}` ruled right on {right} of {claims} known claims.",
        model=judge.name,
        right=trial.right,
        claims=trial.claims,
    )
    return ["", text], True


def render_checks(found: Sequence[tuple[Preset, ModelChecks]]) -> str:
    """Return the results as a table, with the reasons for what does not work below."""
    heads = (*_BEFORE, *_COLUMNS, *_AFTER)
    rows = [[_(head) for head in heads]]
    for preset, checks in found:
        works = {check.name: _MARKS[check.works] for check in checks.checks}
        rows.append(
            [
                _("{name} (private)", name=preset.name) if preset.private else preset.name,
                preset.model.name,
                *(_(works[column]) for column in _COLUMNS),
                "-"
                if checks.first_token is None
                else _("{seconds} s", seconds=f"{checks.first_token:.1f}"),
                _price(checks.price),
                str(preset.context_tokens),
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    bad, note = _("bad "), _("note")
    notes = [
        f"{bad if check.is_bad else note} {preset.name}: {_(check.name)}: {check.detail}"
        for preset, checks in found
        for check in checks.checks
        if check.detail
    ]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _price(price: Price | None) -> str:
    return _("unknown") if price is None else f"${price.read:g}/${price.written:g}"
