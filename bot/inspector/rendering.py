"""Render pages from templates, and Markdown as sanitized HTML."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import nh3
from fastapi import Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markdown_it import MarkdownIt

from bot.bus import WebUser
from bot.core.i18n import N_, _, current_language, format_number, ngettext, pgettext
from bot.core.patterns import LazyPattern
from bot.inspector import labels
from bot.inspector.language import html_, nhtml_, script_address
from bot.inspector.numbers import direction, fixed, money

STATIC = Path(__file__).parent / "static"

_MARKDOWN = MarkdownIt("js-default", {"html": False, "linkify": False, "breaks": True}).disable(
    "image"
)
_UNLINKED = MarkdownIt("js-default", {"html": False, "linkify": False, "breaks": True}).disable(
    ["image", "link"]
)
_LONGEST = 50_000
"""Longer texts are not parsed as Markdown: that takes seconds and blocks the event loop."""

_LINKS = 1_000_000
"""Limit of open brackets times characters for links: the parser rescans the text for each."""

_BRACKET = LazyPattern(r"[\[\]]")

_TAGS = set(
    "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead "
    "tr ul".split()
)
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}


def render_markdown(text: str) -> str:
    """Return Markdown as HTML: text, formatting and http, https and mailto links; no images.

    Links open a new tab without a referrer. Anything else is escaped or removed. A text that is too
    long to parse is returned preformatted; one with very many open brackets has no links.
    """
    text = replace_surrogates(text).replace("\x00", "�")
    if len(text) > _LONGEST:
        return f"<pre>{escape(text)}</pre>"
    linked = _depth(text) * len(text) <= _LINKS
    made = (_MARKDOWN if linked else _UNLINKED).render(text)
    return nh3.clean(
        made,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",  # for programs
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def _depth(text: str) -> int:
    """Return the maximum nesting depth of brackets."""
    depth = most = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket[0] == "[" else max(0, depth - 1)
        most = max(most, depth)
    return most


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which a model may write but UTF-8 cannot encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _writable(value: object) -> object:
    """Return a template's value with lone surrogates replaced."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            # Keep the type, so that Markup stays marked as safe.
            return type(value)(replace_surrogates(value))
    return value


@lru_cache(maxsize=256)
def asset(path: str) -> str:
    """Return the URL of a static file, with a version that depends on its content."""
    digest = sha256((STATIC / path).read_bytes()).hexdigest()[:12]
    return f"/static/{path}?v={digest}"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("bot.inspector"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        finalize=_writable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "asset": asset,
        "labels": labels,
        "_": _,
        "N_": N_,
        "ngettext": ngettext,
        "pgettext": pgettext,
        "html_": html_,
        "nhtml_": nhtml_,
        "language": current_language,
        "direction": direction,
        "script_address": script_address,
        "format_number": format_number,
        "fixed": fixed,
        "money": money,
    }
    return environment


_TEMPLATES = Jinja2Templates(env=_environment())


def render_page(
    request: Request, template: str, visitor: WebUser | None, *, status: int = 200, **values: Any
) -> HTMLResponse:
    """Render a template, with the logged-in user and the CSRF token."""
    csrf = getattr(request.state, "csrf", "")
    return _TEMPLATES.TemplateResponse(
        request, template, {"visitor": visitor, "csrf": csrf, **values}, status_code=status
    )
