"""Catalogues of a language that nobody speaks: each message stands in white brackets, so that all else is seen."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.frontend import parse_keywords
from babel.messages.mofile import write_mo

import bot
from bot.core import i18n
from bot.inspector import language as site_language

_ROOT = Path(bot.__file__).parents[1]
_METHODS = [
    ("**/static/**.js", "javascript"),
    ("**/templates/**.html", "jinja2"),
    ("**.py", "python"),
]
_KEYWORDS = {**DEFAULT_KEYWORDS, **parse_keywords(["_", "N_", "html_", "nhtml_:1,2"])}
_OPTIONS = {"**/templates/**.html": {"silent": "false"}}

UNMARKED = """
(root) => {
  const own = "bdi, [dir=auto], code, .mono, pre, kbd, time, .markdown, [translate=no], svg.plot, option[lang], script, style, noscript";
  const found = [];
  const look = (text, depth) => {
    let outside = "";
    for (const sign of text) {
      if (sign === "⟦") depth += 1;
      else if (sign === "⟧") depth -= 1;
      else if (depth === 0) outside += sign;
    }
    if (/\\p{L}{2,}/u.test(outside.replaceAll("US$", ""))) found.push(outside.trim());
    return depth;
  };
  const walk = (node, depth) => {
    if (node.nodeType === Node.TEXT_NODE) return look(node.data, depth);
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(own)) return depth;
    for (const name of ["aria-label", "title", "placeholder", "alt", "data-prompt", "data-confirm"]) {
      if (node.hasAttribute(name)) look(node.getAttribute(name), 0);
    }
    for (const child of node.childNodes) depth = walk(child, depth);
    return depth;
  };
  walk(root, 0);
  return [...new Set(found)];
}
"""
"""A script that returns the texts of an element that are in no message, nor a person's own, names or code."""


@cache
def messages() -> tuple[tuple[str | tuple[str, ...], str | None], ...]:
    """Return all messages of the program, each with its context."""
    found = {}
    for folder in ("bot", "channels"):
        for _path, _line, message, _comments, context in extract_from_dir(
            str(_ROOT / folder), _METHODS, _OPTIONS, _KEYWORDS
        ):
            found[message, context] = None
    return tuple(found)


def marked(message: str) -> str:
    return f"⟦{message}⟧"


def speak(patch: pytest.MonkeyPatch, folder: Path, *languages: str) -> None:
    """Have the program speak languages of that kind in place of these."""
    for language in languages:
        catalogue = Catalog(locale=language)
        for message, context in messages():
            if isinstance(message, tuple):
                forms = tuple(marked(message[min(at, 1)]) for at in range(catalogue.num_plurals))
                catalogue.add(message, forms, context=context)
            else:
                catalogue.add(message, marked(message), context=context)
        place = folder / language / "LC_MESSAGES"
        place.mkdir(parents=True)
        with (place / "tapebot.mo").open("wb") as file:
            write_mo(file, catalogue)
    patch.setattr(i18n, "_FOLDER", folder)
    # Whatever the patch undoes, the program's own caches never held a word of it.
    patch.setattr(i18n, "_catalogue", cache(i18n._catalogue.__wrapped__))
    uncached = site_language._script_version.__wrapped__
    patch.setattr(site_language, "_script_version", cache(uncached))
