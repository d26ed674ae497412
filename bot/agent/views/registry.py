"""Look up context builders by name: tapebot's own, and those of installed packages."""

from __future__ import annotations

from importlib.metadata import entry_points

from bot.agent.context import ContextBuilder, default_context
from bot.agent.views.exact import exact_context
from bot.core.errors import SettingsError
from bot.core.i18n import _

BUILDER_ENTRY_POINT_GROUP = "tapebot.context_builders"
"""Entry point group in which packages register ``ContextBuilder`` objects."""

DEFAULT_BUILDER = ContextBuilder("default", default_context)

_OWN = {
    builder.name: builder
    for builder in (
        DEFAULT_BUILDER,
        ContextBuilder("exact", exact_context, anchors=True),
        ContextBuilder("with-recall", default_context, always_recall=True),
        ContextBuilder("summary-first", default_context, summaries=True, budget_divisor=4),
    )
}


def builder_names() -> list[str]:
    """Return the names of all builders, tapebot's own first."""
    others = entry_points(group=BUILDER_ENTRY_POINT_GROUP).names
    return [*_OWN, *sorted(others - _OWN.keys())]


def has_builder(name: str) -> bool:
    """Return whether there is a builder with this name; only for another's are packages searched."""
    return name in _OWN or name in builder_names()


def context_builder(name: str) -> ContextBuilder:
    """Return the builder with this name.

    Raises:
        SettingsError: There is no such builder, or its package cannot be loaded.
    """
    if name in _OWN:
        return _OWN[name]
    others = entry_points(group=BUILDER_ENTRY_POINT_GROUP)
    if name not in others.names:
        known = ", ".join(builder_names())
        raise SettingsError(
            _(
                "there is no context builder {name}; installed are {known}",
                name=repr(name),
                known=known,
            )
        )
    try:
        builder = others[name].load()
    except (ImportError, AttributeError) as error:
        raise SettingsError(
            _("context builder {name} cannot be loaded: {error}", name=repr(name), error=error)
        ) from error
    if not isinstance(builder, ContextBuilder) or builder.name != name:
        raise SettingsError(
            _(
                "{value} is not a ContextBuilder named {name}",
                value=others[name].value,
                name=repr(name),
            )
        )
    return builder
