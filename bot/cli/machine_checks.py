"""Checks of ``tapebot doctor`` on this machine: its terminal, folders, disk, packages."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bot.agent.code.sandbox import missing_libraries
from bot.cli.check_result import CheckResult, bad, ok, warn
from bot.core.i18n import _, format_number, ngettext
from bot.core.plugins import Plugins
from bot.core.reasons import Reason
from bot.runtime.settings import Settings

_LITTLE_SPACE, _NO_SPACE = 500_000_000, 50_000_000  # bytes
_LARGE_BOOTSTRAP = 32_000  # bytes; it is part of every prompt
_BOOTSTRAP = ("AGENTS.md", "SOUL.md", "USER.md")
_FILES_LOOKED_AT = 10_000


def check_python() -> CheckResult:
    """Return the version of Python."""
    return ok(platform.python_version())


def check_terminal() -> CheckResult:
    """Check that the terminal can show any text."""
    encoding = (getattr(sys.stdout, "encoding", None) or "none").lower()
    if encoding.replace("-", "") != "utf8":
        remedy = _("Set PYTHONUTF8=1, or a locale such as C.UTF-8.")
        return warn(_("its encoding is {encoding}", encoding=encoding), remedy)
    attached = sys.stdin is not None and sys.stdin.isatty()
    return ok(_("yes") if attached else _("none; input is read from a pipe"))


def check_home(settings: Settings) -> Iterator[CheckResult]:
    """Check that the home folder can be used, and that only its owner can open it."""
    home = settings.home
    yield from _private(Path(".env"), ".env", 0o600)
    if settings.config is not None:
        yield from _private(settings.config, _("the TOML file"), 0o600)
    remedy = _("Set TAPEBOT_HOME to a folder that you own.")
    try:
        is_folder = stat.S_ISDIR(home.stat().st_mode)
    except FileNotFoundError:
        parent = _nearest(home)
        if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
            yield ok(_("{home} will be created at the first start", home=home))
        else:
            yield bad(_("{home} cannot be created in {parent}", home=home, parent=parent), remedy)
    except OSError as exc:
        yield bad(
            _("{home} cannot be reached: {strerror}", home=home, strerror=exc.strerror), remedy
        )
    else:
        if is_folder:
            yield _writable(home)
            yield from _modes(home)
        else:
            yield bad(_("{home} is a file", home=home), _("Set TAPEBOT_HOME to a folder."))


def _nearest(path: Path) -> Path:
    """Return the path, or its nearest parent that exists."""
    return next(each for each in (path, *path.parents) if os.access(each, os.F_OK))


def _writable(home: Path) -> CheckResult:
    try:
        with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor-") as file:
            file.write(b"tapebot")
            file.flush()
            os.fsync(file.fileno())
    except OSError as exc:
        text = _("{home}: writing to disk fails: {strerror}", home=home, strerror=exc.strerror)
        return bad(text, _("Make the folder writable for this user, or free disk space."))
    return ok(_("{home} is writable, and writes reach the disk", home=home))


def _modes(home: Path) -> Iterator[CheckResult]:
    yield from _private(home, _("the home folder"), 0o700)
    inside = islice(home.rglob("*"), _FILES_LOOKED_AT)
    open_files = (path for path in inside if not path.is_symlink() and _is_open(path))
    # If others cannot enter the home folder, the modes inside it do not matter.
    if _is_open(home) and (path := next(open_files, None)) is not None:
        text = _("other users can open its files, e.g. {path}", path=path)
        yield warn(text, f"chmod -R go-rwx '{home}'")


def _is_open(path: Path) -> bool:
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except FileNotFoundError:  # a running tapebot renames files
        return False


def _private(path: Path, what: str, mode: int) -> Iterator[CheckResult]:
    if path.exists() and _is_open(path):
        found = stat.S_IMODE(path.stat().st_mode)
        text = _("other users can open {what} (mode {mode})", what=what, mode=f"{found:04o}")
        yield warn(text, f"chmod {mode:o} '{path}'")


def check_disk(settings: Settings) -> Iterator[CheckResult]:
    """Check that there is space."""
    folder = _nearest(settings.home)
    free = shutil.disk_usage(folder).free
    result = bad if free < _NO_SPACE else warn if free < _LITTLE_SPACE else ok
    remedy = "" if result is ok else _("Free disk space in {folder}.", folder=folder)
    yield result(_("{size} GB free", size=format_number(round(free / 1e9, 1))), remedy)


def check_workspace(settings: Settings) -> Iterator[CheckResult]:
    """Check the files that every prompt repeats."""
    folder = settings.workspace_folder
    if settings.workspace is not None and not os.access(folder, os.R_OK | os.X_OK):
        remedy = _("Create the folder, or correct TAPEBOT_WORKSPACE.")
        yield bad(_("{folder} cannot be opened", folder=folder), remedy)
        return
    sizes = []
    for name in _BOOTSTRAP:
        try:
            size = len((folder / name).read_text(encoding="utf-8").encode())
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as exc:
            text = _("{name} cannot be read: {exc}", name=name, exc=exc)
            yield bad(text, _("Save it as UTF-8."))
            continue
        sizes.append(ngettext("{name} {n} byte", "{name} {n} bytes", size, name=name))
        if size > _LARGE_BOOTSTRAP:
            text = _("{name} has {size} bytes, and every prompt repeats them", name=name, size=size)
            yield warn(text, _("Shorten it."))
    yield ok(", ".join(sizes) or _("no bootstrap files in {folder}", folder=folder))


def check_plugins(settings: Settings) -> Iterator[CheckResult]:
    """List the installed plug-ins; those that may run are loaded to see whether they can be used."""
    plugins = Plugins(settings.plugins)
    for package in plugins.missing():
        remedy = _("Install {package}, or correct TAPEBOT_PLUGINS.", package=package)
        yield warn(_("{package} has none here", package=package), remedy)
    if not plugins.installed:
        return
    from bot.runtime.app.plugins import check_plugins as loaded

    for plugin, problem in loaded(plugins):
        if problem:
            yield warn(*_told(problem))
        elif plugins.is_allowed(plugin):
            yield ok(f"{plugin}")
        else:
            yield ok(_("{plugin}: switched off by TAPEBOT_PLUGINS", plugin=plugin))


def _told(problem: str) -> tuple[str, str]:
    """Return what is wrong with a plug-in, and what to do."""
    if not isinstance(problem, Reason) or problem.code != "plugin_unavailable":
        return f"{problem}", ""
    text = "{plugin} {reason}".format_map(problem.values)
    remedy = f"{problem}".partition(text)[2].strip(" ;；؛。")
    if not remedy.startswith(problem.values["package"]):
        remedy = remedy[:1].upper() + remedy[1:]
    return text, f"{remedy}."


def check_code(settings: Settings) -> Iterator[CheckResult]:
    """Check whether the model can run code."""
    missing = missing_libraries()
    if settings.code == "off":
        yield ok(_("the model runs no code: TAPEBOT_CODE=off"))
    elif not missing:
        yield ok(_("the model may run Python in a sandbox"))
    elif settings.code == "on":
        text = _("{missing} is missing", missing=", ".join(missing))
        yield bad(text, "pip install 'tapebot[code]'")
    else:
        yield ok(_("the model runs no code: there is no sandbox"))


def check_time(settings: Settings) -> Iterator[CheckResult]:
    """Tell the time zone."""
    yield ok(_("times are shown in {timezone}", timezone=settings.timezone))
