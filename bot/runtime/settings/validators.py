"""Validators and types of settings; their errors state the allowed values. Pure."""

from __future__ import annotations

import difflib
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, ValidationInfo
from tzlocal import get_localzone_name

from bot.core.addresses import host_and_port, is_loopback, web_address
from bot.core.i18n import LANGUAGES, N_, _, match_language
from bot.core.locale_names import find_language, find_zones
from bot.core.plugins import Plugins
from channels.registry import PLATFORMS

_RESERVED_PRESETS = frozenset({"default", "none", "offline", "list"})

ProcessRole = Literal["both", "gateway", "worker"]
"""What a process runs: channels (gateway), sessions (worker), or both."""


def absolute(path: Path) -> Path:
    """Return the absolute path, with ``~`` expanded."""
    try:
        return path.expanduser().absolute()
    except RuntimeError as exc:
        raise ValueError(_("a folder; this user has no home folder, so ~ cannot be used")) from exc


def _model_name(name: str) -> str:
    name = name.strip()
    if name.startswith("gguf:"):
        path = name.removeprefix("gguf:").strip()
        if not path:
            raise ValueError(_("gguf: followed by the path of a file"))
        return f"gguf:{absolute(Path(path))}"
    if not name or re.search(r"\s", name):
        raise ValueError(
            _('"offline", "gguf:PATH", or a litellm model name such as openai/gpt-5-mini')
        )
    return name


def preset_name(name: str) -> str:
    """Return the name of a model preset; ``default`` is taken by ``TAPEBOT_MODEL``."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", name) or name in _RESERVED_PRESETS:
        told = _("names of up to 32 small letters, digits, - and _, not {name!r}", name=name)
        if name == "default":
            told = _("{told} (that is what TAPEBOT_MODEL sets)", told=told)
        raise ValueError(told)
    return name


def embedding_name(name: str) -> str:
    """Return the name of an embedding model."""
    name = name.strip()
    if not name or re.search(r"\s", name) or name == "offline" or name.startswith("gguf:"):
        raise ValueError(
            _('"local", or a litellm model name such as openai/text-embedding-3-small')
        )
    return name


def site_listen(text: str | None) -> str | None:
    """Return ``HOST:PORT``; None for ``off``."""
    text = "off" if text is None else text.strip()
    if text.lower() == "off":
        return None
    try:
        return host_and_port(text)
    except ValueError as error:
        raise ValueError(_("HOST:PORT, such as 127.0.0.1:8020, or off")) from error


def site_address(url: str) -> str:
    """Return a site's public address without a trailing slash.

    Plain http is allowed only for loopback addresses, wherever the site listens: in a container it
    listens on all addresses though only this machine reaches it, and requests to other hosts are
    refused.

    Raises:
        ValueError: The address has another form, or would send logins unencrypted.
    """
    url = web_address(url).rstrip("/")
    parts = urlsplit(url)
    if parts.path or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(_("an address without a path, such as https://bot.example.org"))
    if parts.scheme != "https" and not is_loopback(parts.hostname):
        raise ValueError(
            _(
                "an https:// address, because others can read unencrypted traffic; put an HTTPS "
                "proxy in front of the site"
            )
        )
    return url


def _person_or_chat(text: str, info: ValidationInfo) -> str:
    text = text.strip()
    name, _unused, identifier = text.partition(":")
    platform = PLATFORMS.get(name)
    people = info.field_name == "owners"  # a group cannot be an owner
    if platform is not None and re.fullmatch(
        platform.person_id if people else platform.chat_id, identifier
    ):
        return text
    if platform is None and identifier and Plugins().find("channels", name) is not None:
        return text  # only the plug-in knows the form of its ids
    hint = "" if platform is not None else spelling_hint(name, {one: one for one in PLATFORMS})
    told = (
        N_("the ids of people, each {prefixes} and a number, such as {examples}{hint}")
        if people
        else N_("ids, each {prefixes} and a number, such as {examples}{hint}")
    )
    prefixes = _(" or ").join(f"{one}:" for one in PLATFORMS)
    examples = _(" or ").join(f"{other.name}:{other.example_id}" for other in PLATFORMS.values())
    raise ValueError(_(told, prefixes=prefixes, examples=examples, hint=hint))


PersonOrChat = Annotated[str, AfterValidator(_person_or_chat)]
"""A person, chat or server as ``platform:id``; in ``owners``, a person."""


def time_zone(name: str) -> str:
    """Return the name of an existing time zone."""
    name = name.strip()
    with suppress(ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo(name).key
    found = find_zones(name)
    if len(found) == 1:
        return found[0]
    near = [_("(did you mean {name}?)", name=one) for one in found or find_zones(name, close=True)]
    hint = f" {near[0]}" if near else ""
    raise ValueError(_("a time zone such as Europe/Berlin{hint}", hint=hint))


def language_code(code: str) -> str:
    """Return the code of a language that the program speaks."""
    known = match_language([code]) or find_language(code)
    if known is None:
        raise ValueError(_("one of {names}", names=", ".join(LANGUAGES)))
    return known


def local_zone() -> str:
    """Return the name of the machine's time zone; UTC if it is unknown."""
    try:
        name = get_localzone_name()
    except (ZoneInfoNotFoundError, ValueError):
        name = None
    return "UTC" if name in (None, "Etc/UTC") else name


def person_name(name: str) -> str:
    """Return a name of one printable line."""
    name = name.strip()
    if len(name) > 64 or not name.isprintable():
        raise ValueError(_("one line of at most 64 characters"))
    return name


ModelName = Annotated[str, AfterValidator(_model_name)]
"""``offline``, ``gguf:PATH``, or a name of litellm's."""


def spelling_hint(given: str, known: dict[str, str]) -> str:
    """Return a hint at the closest known name; the keys of ``known`` are lower case."""
    near = difflib.get_close_matches(given.lower(), known, n=1, cutoff=0.7)
    return " " + _("(did you mean {name}?)", name=known[near[0]]) if near else ""
