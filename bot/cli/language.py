"""The language of the command line, and the words that it takes from ``argparse``."""

from __future__ import annotations

from collections.abc import Mapping

from bot.core.i18n import N_, environment_language, match_language

ARGPARSE_MESSAGES = (
    N_("usage: "),
    N_("positional arguments"),
    N_("options"),
    N_("show this help message and exit"),
    N_("%(prog)s: error: %(message)s\n"),
    N_("argument %(argument_name)s: %(message)s"),
    N_("the following arguments are required: %s"),
    N_("one of the arguments %s is required"),
    N_("not allowed with argument %s"),
    N_("unrecognized arguments: %s"),
    N_("ambiguous option: %(option)s could match %(matches)s"),
    N_("ignored explicit argument %r"),
    N_("expected one argument"),
    N_("expected at most one argument"),
    N_("expected at least one argument"),
    N_("invalid %(type)s value: %(value)r"),
    N_("invalid choice: %(value)r (choose from %(choices)s)"),
    N_("unknown parser %(parser_name)r (choices: %(choices)s)"),
)
"""What ``argparse`` of Python 3.11 to 3.14 prints."""


def terminal_language(environment: Mapping[str, str]) -> str:
    """Return the language of who sits at the terminal: TAPEBOT_LANGUAGE, else the locale's."""
    chosen = match_language([environment.get("TAPEBOT_LANGUAGE", "")])
    return chosen or environment_language(environment) or "en"
