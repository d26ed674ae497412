"""``tapebot memory audit``: check facts and their evidence, also while tapebot runs."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from itertools import groupby
from zoneinfo import ZoneInfo

import anyio

from bot.cli.tape import printable
from bot.core.clock import Clock, SystemClock
from bot.core.errors import SettingsError, TapebotError, TapeError
from bot.core.i18n import _, format_number
from bot.memory.audit.audit_reader import AuditReader
from bot.memory.audit.findings import AUDIT_FINDING_KINDS, AuditFinding
from bot.memory.audit.rules import audit_scope, audit_session
from bot.memory.session.scope.identities import is_shared_scope
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.settings import Settings

CLEAN, FOUND, UNREADABLE = 0, 1, 2


@dataclass(slots=True)
class _Report:
    """Active facts by scope; findings, scope by scope; tapes that could not be read, with the reason."""

    facts: dict[str, int] = field(default_factory=dict)
    findings: list[AuditFinding] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)


def audit_memory(
    settings: Settings,
    session: str | None,
    *,
    everything: bool = False,
    as_json: bool,
    clock: Clock | None = None,
) -> int:
    """Check the facts of one session, or of all; print what a person should look at.

    Return 0 for no findings, 1 for findings, 2 if something could not be read.
    """
    if everything and session is not None:
        raise SettingsError(_("give a session, or --all"))
    try:
        report = anyio.run(_audit, settings, session, clock or SystemClock())
    except (TapeError, OSError) as error:
        print(f"tapebot: {printable(str(error))}", file=sys.stderr)
        return UNREADABLE
    if as_json:
        findings = [one.as_json() for one in report.findings]
        told = {"scopes": report.facts, "findings": findings, "unreadable": report.unreadable}
        print(json.dumps(told, ensure_ascii=True))
    else:
        print(printable("\n".join(_lines(report))))
    for name, why in report.unreadable.items():
        text = printable(_("{name} cannot be read: {why}", name=name, why=why))
        print(f"tapebot: {text}", file=sys.stderr)
    return UNREADABLE if report.unreadable else FOUND if report.findings else CLEAN


async def _audit(settings: Settings, session: str | None, clock: Clock) -> _Report:
    now = clock.now().astimezone(ZoneInfo(settings.timezone))
    report = _Report()
    async with open_tape_store(settings, read_only=True) as store:
        names = await store.list_tapes()
        if session is not None:
            await store.version(session)  # it may be none
            names = [session]
        gathering = AuditReader(store, clock)
        # A private chat's facts are on the person's tape, which several chats share.
        scopes: dict[str, None] = dict.fromkeys(filter(is_shared_scope, names))
        for name in names:
            if is_shared_scope(name):
                continue
            try:
                audited_session, home = await gathering.read_session(name)
            except TapebotError as error:
                report.unreadable[name] = str(error)
            else:
                scopes[home] = None
                report.findings += audit_session(audited_session)
        for name in scopes:
            try:
                scope = await gathering.read_scope(name)
            except TapebotError as error:
                report.unreadable[name] = str(error)
            else:
                report.facts[name] = len(scope.fold.active())
                report.findings += audit_scope(scope, now)
    report.findings.sort(key=lambda one: (one.scope, AUDIT_FINDING_KINDS.index(one.kind)))
    return report


def _lines(report: _Report) -> list[str]:
    lines: list[str] = []
    for scope, findings in groupby(report.findings, lambda one: one.scope):
        lines.append(scope)
        for kind, same in groupby(findings, lambda one: one.kind):
            lines.append(f"  {kind}")
            for other in same:
                numbers = ", ".join(map(str, other.facts))
                first = f"{numbers}: " if numbers else ""
                lines += [f"    {first}{other.why}", f"      → {other.do}"]
        lines.append("")
    facts, scopes, found = sum(report.facts.values()), len(report.facts), len(report.findings)
    counts = {
        "scopes": format_number(scopes),
        "facts": format_number(facts),
        "found": format_number(found),
    }
    if found:
        return [*lines, _("scopes: {scopes}, facts: {facts}; findings: {found}", **counts)]
    return [*lines, _("scopes: {scopes}, facts: {facts}; no findings", **counts)]
