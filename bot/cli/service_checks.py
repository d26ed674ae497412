"""Checks of ``tapebot doctor`` on what tapebot works with: tapes, database, models, channels.

What is called only with a probe is named by ``uncalled`` without one.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from bot.agent.consolidation.judge_trial import JUDGES_FILE, JudgeTrials, failed_judge_text
from bot.bus.access.access_list import AccessList, ConfiguredAccess, has_owner
from bot.bus.access.file_store import FILE, read_access_list
from bot.cli.check_result import CheckResult, bad, ok, warn
from bot.core.errors import TapebotError
from bot.core.i18n import _, ngettext
from bot.core.plugins import Plugins
from bot.llm.http.providers import WITHOUT_KEY, find_server
from bot.runtime.app.database_services import open_database
from bot.runtime.control_socket import call_control
from bot.runtime.models import RESERVED_MODELS
from bot.runtime.settings import PREFIX, PresetSettings, Settings, runs_in_process
from bot.runtime.setup.checks import PlatformRefused, ask_platform, quiet_retries
from bot.runtime.setup.providers import key_variables
from channels.base import TokenCheck
from channels.registry import PLATFORMS, Platform

if TYPE_CHECKING:
    from bot.core.database.connections import Database

_STORE_SECONDS = 15.0
_DATABASE_SECONDS = 5.0

_SKEW = 5.0
"""Seconds that two clocks may differ: messages dated by one are ordered beside the other's."""

_SERVER = """
select current_setting('server_version_num')::int, current_setting('server_version'), clock_timestamp(),
    current_setting('synchronous_commit'), current_setting('fsync')
"""
_LEASES = "select count(*) from tapebot.lease where until > clock_timestamp()"
_BARE_NAMES = {"gpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai"}
_BARE_NAMES |= {"claude": "anthropic"}


async def check_tapes(settings: Settings, probe: bool) -> AsyncIterator[CheckResult]:
    """Check where tapes are kept."""
    if settings.database_url is not None:
        return
    if settings.tape_store != "file":
        yield await _check_store(settings, settings.tape_store, probe=probe)
    elif settings.home.is_dir():
        yield await anyio.to_thread.run_sync(_check_lock, settings.home / "tapes")


def _check_lock(tapes: Path) -> CheckResult:
    try:
        # A shared lock for an instant, which does not disturb a holder's own lock.
        with (tapes / ".lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return ok(_("in use by a running tapebot ({owner})", owner=_owner(tapes)))
    except FileNotFoundError:
        return ok(_("none yet"))
    except OSError as exc:
        remedy = _("Make the user that runs tapebot the owner of {tapes}", tapes=tapes)
        return bad(_("the lock cannot be checked: {strerror}", strerror=exc.strerror), remedy)
    return ok(_("not in use"))


def _owner(tapes: Path) -> str:
    try:
        pid = (tapes / ".owner").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        pid = ""
    return _("process {pid}", pid=pid) if pid.isdigit() else _("unknown process")


async def _check_store(settings: Settings, name: str, *, probe: bool) -> CheckResult:
    from bot.runtime.app.tape_stores import GROUP, build_tape_store

    if name == "memory":
        remedy = _("Set TAPEBOT_TAPE_STORE=file to keep them.")
        return warn(_("in memory: they are lost when tapebot ends"), remedy)
    remote = name.startswith(("http://", "https://"))
    where = (
        _("on the tape server {name}", name=name)
        if remote
        else _("in the installed store {name}", name=name)
    )
    if not probe and not remote and name in {point.name for point in entry_points(group=GROUP)}:
        return ok(where, uncalled=name)
    try:
        store = build_tape_store(settings, read_only=True)
    except TapebotError as error:
        return bad(str(error), _("Correct it."))
    try:
        if not probe:
            return ok(where, uncalled=name)
        with anyio.fail_after(_STORE_SECONDS):
            seen = len(await store.list_tapes())
    except TimeoutError:
        seconds = f"{_STORE_SECONDS:g}"
        text = _("{where}: no answer within {seconds} seconds", where=where, seconds=seconds)
        return bad(text, _("Check that it runs and can be reached from here."))
    except TapebotError as error:
        return bad(f"{where}: {error}", _("Fix it; tapes are only kept there."))
    finally:
        await store.close()
    return ok(
        ngettext(
            "{where}: it answers, and lists {n} tape",
            "{where}: it answers, and lists {n} tapes",
            seen,
            where=where,
        )
    )


async def check_database(settings: Settings, _probe: bool) -> AsyncIterator[CheckResult]:
    """Check the database that processes share; change nothing in it."""
    if settings.database_url is None:
        return
    try:
        async with open_database(settings, retry_seconds=_DATABASE_SECONDS) as database:
            found = [*await _check_server(database), await _check_tables(database)]
    except TapebotError as error:
        found = [bad(str(error), _("Check that it runs, and correct TAPEBOT_DATABASE_URL."))]
    for one in found:
        yield one


async def _check_server(database: Database) -> list[CheckResult]:
    from bot.core.database.schema import OLDEST_SERVER

    before = time.time()
    rows = await database.fetch(_SERVER)
    after = time.time()
    number, version, asked_at, commit, fsync = rows[0]
    place = database.display_address
    if number < OLDEST_SERVER:
        text = _("{place}: PostgreSQL {version} is too old", place=place, version=version)
        found = [bad(text, _("Use PostgreSQL 15 or newer."))]
    else:
        found = [ok(_("{place}: PostgreSQL {version} answers", place=place, version=version))]
    # Only a difference beyond the query's own duration counts.
    now = asked_at.timestamp()
    ahead = now - after if now > after else min(0.0, now - before)
    seconds = f"{abs(ahead):.0f}"
    if abs(ahead) >= _SKEW:
        text = (
            _("its clock is {seconds} seconds ahead of this machine's", seconds=seconds)
            if ahead > 0
            else _("its clock is {seconds} seconds behind this machine's", seconds=seconds)
        )
        found.append(warn(text, _("Synchronise both clocks (NTP).")))
    unsafe = [f"synchronous_commit = {commit}"] if commit in ("off", "local") else []
    unsafe += ["fsync = off"] if fsync == "off" else []
    if unsafe:
        text = _("it may lose confirmed writes ({unsafe})", unsafe=", ".join(unsafe))
        found.append(warn(text, _("Set them to PostgreSQL's defaults.")))
    return found


async def _check_tables(database: Database) -> CheckResult:
    from bot.core.database.schema import has_schema

    if not await has_schema(database):
        return bad(_("there are no tables yet"), "tapebot db create")
    return ok(
        ngettext(
            "its tables have this version; {n} lease held by running processes",
            "its tables have this version; {n} leases held by running processes",
            (await database.fetch(_LEASES))[0][0],
        )
    )


async def check_models(settings: Settings, probe: bool) -> AsyncIterator[CheckResult]:
    """Check that each model can be called; with a probe, call the chat's."""
    main = settings.roles.chat or settings.model or "offline"
    if settings.roles.chat is None:
        result = _model(main, settings)
        calls = main != "offline" and not probe
        yield replace(result, uncalled=main) if calls else result
    for name, preset in settings.models.items():
        result = _preset(name, preset, settings, needed=name == settings.roles.chat)
        yield replace(result, uncalled=preset.model) if name == main and not probe else result
    for name in settings.fallback_models:
        if name not in settings.models:
            yield _model(name, settings, _("fallback "))
    judge = settings.judge_model
    if judge is not None and judge not in ("none", "off", "offline", *settings.models):
        yield _model(judge, settings, _("judge "))
    named = {judge or settings.model, *(preset.model for preset in settings.models.values())}
    for name, trial in JudgeTrials(settings.home / JUDGES_FILE).failed().items():
        if name in named:
            text = failed_judge_text(name, trial)
            yield warn(text, _("Try it again with `tapebot models`."))
    if probe and main != "offline":
        for result in await _call_model(settings):
            yield result


async def _call_model(settings: Settings) -> list[CheckResult]:
    from bot.llm.base import ModelRequest, ToolSpec
    from bot.runtime.app import make_model

    model = make_model(settings)
    # for the model
    asked = [{"role": "user", "content": "Answer with one word: ready"}]
    tool = ToolSpec("wait", "Wait.", {"type": "object", "properties": {}})  # for the model
    try:
        with quiet_retries(), anyio.fail_after(settings.model_timeout):
            text = (await model.complete(ModelRequest(asked, (tool,)))).content.strip()
        found = [ok(_("it answers: {text!r}", text=text[:60]))]
    except TimeoutError:
        seconds = f"{settings.model_timeout:g}"
        text = _("no answer within {seconds} seconds", seconds=seconds)
        found = [bad(text, _("Try again later."))]
    except TapebotError as exc:
        text = _("the call failed: {exc}", exc=exc)
        found = [bad(text, _("Check its name, key and address."))]
    finally:
        with anyio.CancelScope(shield=True):
            await model.aclose()
    if refused := model.profile.without:
        text = _("its server refuses: {parts}", parts=", ".join(refused))
        found.append(warn(text, _("Another model may take them.")))
    return found


def _preset(name: str, preset: PresetSettings, settings: Settings, *, needed: bool) -> CheckResult:
    role = _("preset {name}, ", name=name)
    if preset.api_key is not None and not runs_in_process(preset.model):
        return ok(_("{model}: its key is in tapebot.toml", model=role + preset.model))
    found = _model(preset.model, settings, role, needed=needed)
    # A server at another address may need no key.
    return replace(found, level="warn") if preset.api_base and found.level == "bad" else found


def _model(name: str, settings: Settings, role: str = "", *, needed: bool = False) -> CheckResult:
    found = _usable(name, settings)
    found = replace(found, text=f"{role}{name}: {found.text}")
    spare = bool(role) and not needed
    return replace(found, level="warn") if spare and found.level == "bad" else found


def _usable(name: str, settings: Settings) -> CheckResult:
    if name == "offline":
        return ok(_("a notebook, without a language model; TAPEBOT_MODEL sets one"))
    if name.startswith("gguf:"):
        return _gguf(Path(name.removeprefix("gguf:")))
    kind, colon, _rest = name.partition(":")
    plugin = Plugins(settings.plugins).find("models", kind) if colon else None
    if plugin is not None:
        return ok(_("a plug-in's, of {package}", package=plugin.package))
    if colon and kind.isidentifier() and kind not in RESERVED_MODELS:
        remedy = _("Install its package, correct TAPEBOT_PLUGINS, or write provider/model.")
        return bad(_("no plug-in here offers {kind}", kind=kind), remedy)
    direct = find_server(name, settings.model_api_base) and settings.model_client == "http"
    library = "aiohttp" if direct else "litellm"
    if importlib.util.find_spec(library) is None:
        return bad(_("{library} is missing", library=library), "pip install 'tapebot[models]'")
    return _key(_provider(name), settings)


def _gguf(path: Path) -> CheckResult:
    if importlib.util.find_spec("xllamacpp") is None:
        return bad(_("xllamacpp is missing"), "pip install 'tapebot[local]'")
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as exc:
        remedy = _("Correct the path in TAPEBOT_MODEL.")
        return bad(_("cannot be read: {strerror}", strerror=exc.strerror), remedy)
    if magic != b"GGUF":
        return bad(_("is not a GGUF file"), _("Get the model in GGUF format."))
    return ok(_("{size} MB, run in this process", size=f"{path.stat().st_size / 1e6:.0f}"))


def _provider(name: str) -> str:
    provider, slash, _rest = name.partition("/")
    if slash:
        return provider
    return next((known for start, known in _BARE_NAMES.items() if name.startswith(start)), "")


def _key(provider: str, settings: Settings) -> CheckResult:
    names = key_variables(provider)
    if provider in WITHOUT_KEY:
        return ok(_("{provider} needs no key", provider=provider))
    main = provider == _provider(settings.model or "")
    if settings.model_api_key is not None and main:
        return ok(_("its key is in TAPEBOT_MODEL_API_KEY"))
    if held := next((name for name in names if os.environ.get(name)), None):
        return ok(_("its key is in {held}", held=held))
    if not names:
        return ok(_("it is unknown whether it needs a key"))
    remedy = _("Set {name}, or TAPEBOT_MODEL_API_KEY for the main model.", name=names[0])
    own_address = settings.model_api_base is not None and main
    return (warn if own_address else bad)(_("it has no key"), remedy)


async def check_channels(settings: Settings, probe: bool) -> AsyncIterator[CheckResult]:
    """Check that each configured channel can run, and is connected if the bot runs."""
    found = list(_channels(settings))
    if not found:
        names = _(" or ").join(PREFIX + other.setting.upper() for other in PLATFORMS.values())
        yield ok(_("the console"), _("Set {names} to add a channel.", names=names))
    for title, platform, check in found:
        yield await _check_channel(title, platform, check, probe=probe)
    try:
        told = await call_control(settings.home, {"do": "channels"}) or {}
    except TapebotError as error:
        yield warn(str(error))
        return
    for line in told.get("problems", ()):
        yield warn(line, _("Check the network, and the address if one is set."))


def _channels(settings: Settings) -> Iterator[tuple[str, Platform, TokenCheck | None]]:
    """Yield each configured bot: its title, platform, and the request that checks its token."""
    for platform in PLATFORMS.values():
        # The shards of one bot share its name and its token.
        for name, spec in {spec.name: spec for spec in platform.channels(settings)}.items():
            title = platform.title
            if name != platform.name:
                title = _("{title}, as {name}", title=title, name=name)
            yield title, platform, spec.token_check


async def _check_channel(
    name: str, platform: Platform, check: TokenCheck | None, *, probe: bool
) -> CheckResult:
    library = platform.library
    if library is not None and importlib.util.find_spec(library) is None:
        remedy = _("Install it: pip install 'tapebot[{name}]'", name=platform.name)
        return bad(_("{library} is missing for {name}", library=library, name=name), remedy)
    if check is None or not probe:
        return ok(name, uncalled="" if check is None else name)
    try:
        told = await ask_platform(check)
    except PlatformRefused as refused:
        if refused.status is None:
            remedy = _("Check the network, and the address if one is set.")
            return warn(_("{name} cannot be reached", name=name), remedy)
        if refused.status in (401, 404):
            remedy = _("Set the right token; @BotFather or the developer portal shows it.")
            return bad(_("{name} does not accept the token", name=name), remedy)
        text = _("{name} answered {code}", name=name, code=refused.status)
        return warn(text, _("Try again later."))
    person = told.get("result", told)
    who = person.get("username") if isinstance(person, dict) else None
    return ok(_("{name}: connected as @{who}", name=name, who=who or "?"))


async def check_access(settings: Settings, _probe: bool) -> AsyncIterator[CheckResult]:
    """Check that somebody may use the channels."""
    if not any(_channels(settings)):
        return
    try:
        access = await _read_access(settings)
    except TapebotError as error:
        yield bad(str(error))
        return
    named = ConfiguredAccess(frozenset(settings.owners), frozenset(settings.allow))
    if not has_owner(access, named):
        remedy = _(
            "Start the bot and send it the claim code that it prints, or set TAPEBOT_OWNERS."
        )
        yield warn(_("the bot has no owner yet, so it answers nobody"), remedy)
        return
    owners = named.owners | {one.person for one in access.people if one.role == "owner"}
    others = named.allow | {one.person for one in access.people}
    others |= {one.chat for one in access.chats}
    yield ok(
        ngettext(
            "{n} owner; people and chats in total: {total}",
            "{n} owners; people and chats in total: {total}",
            len(owners),
            total=len(owners | others),
        )
    )


async def _read_access(settings: Settings) -> AccessList:
    """Return who has access; the database has it if there is one."""
    if settings.database_url is None:
        return await anyio.to_thread.run_sync(read_access_list, settings.home / FILE)
    from bot.core.database.schema import has_schema

    async with open_database(settings, retry_seconds=_DATABASE_SECONDS) as database:
        if not await has_schema(database):
            raise TapebotError(_("unknown: see the database"))
        from bot.bus.access.postgres_store import PostgresAccessStore

        return await PostgresAccessStore(database).peek()
