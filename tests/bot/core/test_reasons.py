import copy
import json
import re
import string
from importlib.metadata import EntryPoint

import pytest

from bot.cli.doctor_plugins import check_installed_plugins
from bot.core.errors import MemoryRefused
from bot.core.i18n import LANGUAGES, use_language
from bot.core.plugins import Plugin, Plugins
from bot.core.reason_messages import REASONS
from bot.core.reasons import (
    Reason,
    join_reasons,
    parse_reason,
    reason_of,
    reason_text,
    split_reasons,
)
from bot.inspector.errors import http_error
from bot.runtime.sessions.supervisor import _told
from bot.runtime.settings import Settings
from tests.bracketed_language import bracketed

_NUMBERS = frozenset({"confidence", "needed"})


def _example(code: str) -> Reason:
    names = {name for _text, name, *_rest in string.Formatter().parse(REASONS[code]) if name}
    values = {name: 0.25 if name in _NUMBERS else f"the {name}" for name in names}
    return Reason(code, **values | ({"reasons": ["one", "two"]} if code == "several" else {}))


@pytest.mark.parametrize("code", sorted(REASONS))
def test_each_reason_is_recorded_as_code_and_values_and_read_back(code):
    reason = _example(code)
    record = json.loads(json.dumps(reason.as_json()))
    read = parse_reason(record)
    assert (read, read.code, read.values) == (reason, reason.code, reason.values)
    assert copy.deepcopy(read) == reason
    if re.search(r"\w \w", re.sub(r"\{[^}]*\}", "", REASONS[code])):
        assert str(reason) not in json.dumps(record)


def test_a_reason_is_shown_in_the_readers_language_and_told_to_the_model_in_english(tmp_path):
    reason = Reason("fact_does_not_end", fact=3, why=Reason("words_say_nothing"))
    with bracketed(tmp_path), use_language("de"):
        assert reason_text(reason) == "⟦fact 3 does not end: ⟦the words say nothing of it⟧⟧"
        assert f"{reason!s}" == "fact 3 does not end: the words say nothing of it"


def test_an_error_of_a_reason_is_shown_in_the_readers_language_and_logged_in_english(tmp_path):
    error = MemoryRefused(Reason("cleared"))
    with bracketed(tmp_path), use_language("de"):
        assert (f"{error}", str(error)) == ("⟦cleared⟧", "cleared")
        assert f"{MemoryRefused('no reason')}" == "no reason"


def test_amounts_are_written_as_the_reader_writes_them():
    reason = Reason("file_kept_in_part", limit=20_000)
    assert "20,000" in reason
    with use_language("de"):
        assert "20.000" in f"{reason}"


def test_the_text_of_an_old_entry_is_shown_as_it_is(tmp_path):
    with bracketed(tmp_path), use_language("de"):
        assert reason_text("it {is} older than codes") == "it {is} older than codes"
    assert split_reasons("p2 says otherwise; cleared") == ["p2 says otherwise", "cleared"]


def test_several_reasons_stay_apart(tmp_path):
    joined = join_reasons([Reason("cleared"), "her own words; and more", Reason("parted")])
    read = parse_reason(json.loads(json.dumps(joined.as_json())))
    assert split_reasons(read) == ["cleared", "her own words; and more", "parted"]
    with bracketed(tmp_path), use_language("de"):
        assert reason_text(read) == "⟦cleared⟧; her own words; and more; ⟦parted⟧"


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"code": 7},
        {"code": "from a later version", "why": []},
        {"code": "fact_missing"},
        {"code": "unsure", "confidence": "{0}", "needed": None},
        {"code": "several", "reasons": 3},
        {"code": "judged_by", "ruling": {"code": {}}, "model": {"code": "x"}},
        None,
        [],
        3,
    ],
)
def test_a_malformed_reason_is_shown_without_an_error(record):
    assert isinstance(reason_text(record), str)


def test_a_refusal_that_is_a_reason_is_told_in_the_readers_language_wherever_it_ends():
    refused = MemoryRefused(Reason("still_running"))
    with use_language("de"):
        told = f"{refused}"
        assert told.startswith("etwas läuft noch")
        assert http_error(refused).detail == told
        assert _told(refused) == told


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_the_doctor_says_what_is_wrong_with_a_plugin_and_what_to_do_in_every_language(
    language, monkeypatch
):
    plugin = Plugin("tools", "dice.roll", "dice", "1.0", EntryPoint("dice.roll", "dice:roll", "x"))
    problem = reason_of(plugin.unavailable(Reason("plugin_no_function")))
    monkeypatch.setattr(
        "bot.runtime.app.plugins.check_plugins", lambda _plugins: [(plugin, problem)]
    )
    monkeypatch.setattr(Plugins, "missing", lambda _self: [])
    monkeypatch.setattr(Plugins, "installed", [plugin])
    with use_language(language):
        [found] = check_installed_plugins(Settings(plugins="all"))
        assert found.text == f"{plugin} {Reason('plugin_no_function')}"
        assert "dice" in found.remedy
        assert "TAPEBOT_PLUGINS" in found.remedy
        assert (language == "en") == found.remedy.startswith("Update or uninstall")


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_any_number_that_a_tape_may_hold_is_shown(language):
    with use_language(language):
        assert str(10**40) in reason_text({"code": "too_long", "limit": 10**40})
        assert "1000" in re.sub(r"\W", "", reason_text({"code": "too_long", "limit": 1000}))
