"""Configuration of Sphinx, which makes the site from the Markdown files of the repository.

The source folder is the repository's root, so that links between its files are the same on the site. ``docs/index.md``
lists the pages. What it builds loads nothing from other hosts.
"""

from __future__ import annotations

import logging
from typing import Any

from sphinx.application import Sphinx

project = "tapebot"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docs.website.generated_reference",
]

root_doc = "docs/index"
include_patterns = ["*.md", "deploy/*.md", "docs/**.md"]
exclude_patterns = [
    "bench",
    "bot",
    "channels",
    "dist",
    "evals",
    "locks",
    "testkit",
    "tests",
    "**/.*",
]
suppress_warnings = ["misc.highlighting_failure"]  # blocks of telegram, discord, chat
# Pages that are still to come are named as patterns in docs/index.md. Sphinx 9.0 warns of a pattern without a page, with a
# subtype and no type: suppress_warnings cannot name it.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(
    lambda record: getattr(record, "subtype", None) != "empty_glob"
)

myst_enable_extensions = ["html_image"]  # <img> of a file is an image of the site
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_use_ivar = True
python_use_unqualified_type_names = True
toc_object_entries = False

html_theme = "furo"
html_title = "tapebot"
html_favicon = "../../bot/inspector/static/icon.svg"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_extra_path = ["start"]  # the site's first address leads to docs/index.html
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
templates_path: list[str] = []


def complete_for_keyboards(_: Sphinx, *page: Any) -> None:
    """Let keyboards scroll what is wider than a page, and give the captions of the navigation their level."""
    _name, _template, context, _tree = page
    if "body" in context:
        context["body"] = (
            context["body"]
            .replace("<pre>", '<pre tabindex="0">')
            .replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
        )
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )


def setup(app: Sphinx) -> None:
    """Change pages after the theme has made its parts of them."""
    app.connect("html-page-context", complete_for_keyboards, priority=900)
