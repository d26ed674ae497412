import copy
import json
import re
import string

from bot.core.i18n import use_language
from bot.core.reason_messages import REASONS
from bot.core.reasons import Reason, parse_reason, reason_text

_NUMBERS = frozenset({"confidence", "needed"})


def _example(code: str) -> Reason:
    names = {name for _text, name, *_rest in string.Formatter().parse(REASONS[code]) if name}
    values = {name: 0.25 if name in _NUMBERS else f"the {name}" for name in names}
    return Reason(code, **values | ({"reasons": ["one", "two"]} if code == "several" else {}))


def test_each_reason_is_recorded_as_code_and_values_and_read_back():
    for code in sorted(REASONS):
        reason = _example(code)
        record = json.loads(json.dumps(reason.as_json()))
        read = parse_reason(record)
        assert (read, read.code, read.values) == (reason, reason.code, reason.values)
        assert copy.deepcopy(read) == reason
        if re.search(r"\w \w", re.sub(r"\{[^}]*\}", "", REASONS[code])):
            assert str(reason) not in json.dumps(record)


def test_a_reason_is_shown_in_the_readers_language_and_told_to_the_model_in_english():
    reason = Reason("still_running")
    english = str(reason)
    with use_language("de"):
        assert f"{reason}".startswith("etwas läuft noch")
        assert str(reason) == english != f"{reason}"


def test_a_malformed_reason_is_shown_without_an_error():
    for record in (
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
    ):
        assert isinstance(reason_text(record), str)
