"""Every command of the command line can be run with what it declares."""

from __future__ import annotations

import argparse
import importlib
import inspect
from collections.abc import Iterator

import pytest

from bot.cli.commands import make_parser


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield every parser that has a command."""
    if parser.get_default("chosen") is not None:
        yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from leaves(child)


LEAVES = {parser.prog: parser for parser in leaves(make_parser())}


@pytest.mark.parametrize("name", LEAVES)
def test_a_command_has_a_function_that_takes_its_arguments(name):
    chosen = LEAVES[name].get_default("chosen")
    module, _, function = chosen.run.partition(":")
    found = getattr(importlib.import_module(f"bot.cli.{module}"), function)
    kinds = (argparse._HelpAction, argparse._SubParsersAction)
    given = {a.dest for a in LEAVES[name]._actions if not isinstance(a, kinds)} | {*chosen.given}
    settings = set() if chosen.name == "doctor" else {"settings"}
    inspect.signature(found).bind(**dict.fromkeys(given - {"version"} | settings))


@pytest.mark.parametrize("name", LEAVES)
def test_a_command_says_what_it_does_and_what_its_arguments_are_for(name):
    help_ = LEAVES[name].format_help()
    assert help_.startswith(f"usage: {name} ")
    assert "{steps}" not in help_
