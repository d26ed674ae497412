"""Try a judge on claims whose rulings are known: a weak model must not pass its own errors.

Rule 1: a judge that rules right on fewer than nine in ten counts as none.
Rule 2: each model is tried once, and again when the claims or the judge's prompt change.
"""

from __future__ import annotations

import json
import logging
import zlib
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from bot.agent.consolidation.claim_judge import JUDGE_PROMPT, ClaimQuestion, judge_claims
from bot.core.files import replace_file
from bot.core.i18n import _
from bot.llm.base import Model, Usage
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.proposals import Judgement

logger = logging.getLogger(__name__)

JUDGES_FILE = "judges.json"
"""File in the home with the results by the name of the model."""

_WHEN = "2026-03-06T10:00:00+00:00"


@dataclass(frozen=True, slots=True)
class JudgeTrial:
    """How many of the known claims a model ruled on rightly.

    Attributes:
        right: Claims with the right ruling.
        claims: All claims.
    """

    right: int
    claims: int

    @property
    def passed(self) -> bool:
        """Whether the model counts as a judge."""
        return self.right * 10 >= self.claims * 9


class JudgeTrials:
    """The results of trials, kept in a file.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._results = _read(path)
        self._lock = anyio.Lock()

    def result(self, model: Model) -> JudgeTrial | None:
        """Return the result of a model's trial; None if it was not tried."""
        return self._results.get(_key(model))

    def failed(self) -> dict[str, JudgeTrial]:
        """Return the trials that models failed, by the name of the model."""
        tried = ((*name.rpartition(" "), trial) for name, trial in self._results.items())
        return {
            name: trial
            for name, _, version, trial in tried
            if version == _version() and not trial.passed
        }

    async def try_once(self, model: Model) -> tuple[JudgeTrial | None, Usage]:
        """Try a model unless it was tried; see ``try_again``."""
        async with self._lock:
            if (known := self.result(model)) is not None:
                return known, Usage()
            return await self._try(model)

    async def try_again(self, model: Model) -> tuple[JudgeTrial | None, Usage]:
        """Have a model rule on the known claims; keep and return the result, and the usage.

        Returns:
            No result if the model gave no answer; nothing is kept then.
        """
        async with self._lock:
            return await self._try(model)

    async def _try(self, model: Model) -> tuple[JudgeTrial | None, Usage]:
        sample = known_claims()
        judgements, usage = await judge_claims(model, [_question(one) for one in sample], UTC)
        if all(judgement is None for judgement in judgements):
            return None, usage
        right = sum(map(_is_right, sample, judgements))
        trial = JudgeTrial(right, len(sample))
        logger.info("the judge %s ruled right on %d of %d claims", model.name, right, len(sample))
        # Another process may have tried other models.
        self._results = {**_read(self._path), _key(model): trial}
        kept = {name: [one.right, one.claims] for name, one in sorted(self._results.items())}
        data = json.dumps(kept, ensure_ascii=False, indent=1).encode()
        try:
            await anyio.to_thread.run_sync(replace_file, self._path, data)
        except OSError as error:
            logger.warning("the trial of the judge %s is not kept: %s", model.name, error)
        return trial, usage


@cache
def known_claims() -> list[dict[str, Any]]:
    """Return the claims: what was said, the claim, whether it holds, perhaps a fact that it replaces."""
    text = files(__package__).joinpath("known_claims.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _question(known: dict[str, Any]) -> ClaimQuestion:
    said = Evidence(
        "trial", 1, known["said"], known.get("who", "Ada"), _WHEN, context=known.get("answers", "")
    )
    old = known.get("replaces")
    return ClaimQuestion(known["claim"], (said,), (Fact(1, old),) if old else ())


def _is_right(known: dict[str, Any], judgement: Judgement | None) -> bool:
    if judgement is None or judgement.is_supported is not known["holds"]:
        return False
    return not judgement.is_supported or bool(judgement.ends) is ("replaces" in known)


def _key(model: Model) -> str:
    return f"{model.name} {_version()}"


@cache
def _version() -> str:
    """Return what changes with the claims and the judge's prompt."""
    return f"{zlib.crc32(json.dumps([JUDGE_PROMPT, known_claims()]).encode()):08x}"


def _read(path: Path) -> dict[str, JudgeTrial]:
    """Return the kept results; a file that cannot be read holds none."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): JudgeTrial(int(right), int(of)) for name, (right, of) in kept.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def failed_judge_text(model: str, trial: JudgeTrial) -> str:
    """Return for people that a model counts as no judge."""
    return _(
        "Judge: `{model}` ruled right on {right} of {claims} known claims only, so it counts as none: what "
        "you say is kept as quotations. Name a stronger one in `TAPEBOT_JUDGE_MODEL`.",
        model=model,
        right=trial.right,
        claims=trial.claims,
    )
