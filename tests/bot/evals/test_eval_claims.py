"""What the measure of the write gate makes of a file of labelled claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bot.evals.claim_eval import LabelledClaim, claim_statistics, judge_all
from bot.evals.labels import read_labels

from bot.agent.consolidation.evidence_checker import RETRACTION_PREFIX
from bot.cli.main import main
from bot.testing.scripted_model import ScriptedModel, judgement_reply, text_reply

OURS = Path(__file__).parents[3] / "evals" / "claims.jsonl"


def claim(text: str, said: str, *, honest: bool = True, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "who": "Ada", "at": "2026-11-23T09:00:00+00:00", "text": said}
    return {
        "kind": "example",
        "honest": honest,
        "op": "add",
        "claim": text,
        "fact": None,
        "messages": [message | more.pop("message", {})],
        "cites": [{"message": 0, "quote": said}],
        **more,
    }


HONEST = claim("The user lives in Oslo.", "I live in Oslo.")
LIE = claim("The user lives in Rome.", "I live in Oslo.", honest=False, kind="name")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "claims.jsonl"


def write(file: Path, *claims: dict[str, Any]) -> str:
    file.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in claims))
    return str(file)


def told(capsys: pytest.CaptureFixture[str], path: str) -> dict[str, Any]:
    assert main(["eval", "claims", path, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_claims_are_counted_by_what_became_of_them(file, capsys):
    again = claim("", "I still live in Oslo.", op="strengthen", fact="The user lives in Oslo.")
    assert told(capsys, write(file, HONEST, LIE, again)) == {
        "judge": "none",
        "honest": {"n": 2, "claim": 2, "quote": 0, "refused": 0},
        "dishonest": {"n": 1, "believed": 0, "quote": 1, "refused": 0},
        "kinds": {
            "example": {"n": 2, "claim": 2, "believed": 0, "quote": 0, "refused": 0},
            "name": {"n": 1, "claim": 0, "believed": 0, "quote": 1, "refused": 0},
        },
    }


@pytest.mark.parametrize(
    "message",
    [{"forwarded": True}, {"text": "See there.", "quoted": "I live in Oslo."},
     {"text": "See there.", "document": "I live in Oslo."}],
    ids=["forwarded", "quoted", "document"],
)  # fmt: skip
def test_what_a_message_brings_of_others_is_not_its_senders(file, capsys, message):
    theirs = HONEST | {"honest": False, "messages": [HONEST["messages"][0] | message]}
    assert told(capsys, write(file, theirs))["dishonest"]["believed"] == 0


def test_each_wrong_one_is_shown_with_its_reason(file, capsys):
    unheard = claim("The user lives in Bergen.", "Do I live in Oslo?")
    believed = HONEST | {"honest": False}
    assert main(["eval", "claims", write(file, unheard, believed)]) == 0
    shown = capsys.readouterr().out
    assert (
        "not believed (the user's words do not name Bergen): 'The user lives in Bergen.'" in shown
    )
    assert "example, believed (approved): 'The user lives in Oslo.'" in shown


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nonsense", "line 1: it: Invalid JSON"),
        (json.dumps(HONEST | {"fact": "x"}), "line 1: it: Value error, add has no fact"),
        (json.dumps(HONEST | {"cites": [{"message": 1, "quote": "x"}]}), "a message that is not there"),
        (json.dumps(HONEST | {"unknown": 1}), "line 1: unknown: Extra inputs"),
        ("", "is empty"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_one_of_claims_is_told_where(file, capsys, line, why):
    file.write_text(line + "\n")
    assert main(["eval", "claims", str(file)]) != 0
    assert why in capsys.readouterr().err


def test_our_own_claims_are_believed_no_less_and_no_more_than_before(capsys):
    found = told(capsys, str(OURS))
    assert found["honest"]["claim"] >= 216
    assert found["honest"]["refused"] <= 10
    assert found["dishonest"]["believed"] <= 11


@pytest.mark.parametrize("name", ["claims", "claims-hard", "claims-held-out"])
async def test_a_judge_who_is_right_is_stopped_by_no_rule_and_lets_nothing_else_in(name):
    claims = read_labels(OURS.with_name(f"{name}.jsonl"), LabelledClaim)

    def ruling(asked: dict[str, Any]) -> str:
        claim = asked["claim"].removeprefix(RETRACTION_PREFIX).strip()
        begins = " ".join(asked["said"][-1]["words"].split())[:12]
        meant = [
            one.honest
            for one in claims
            if claim == one.fact or (one.claim and claim.endswith(one.claim))
            if any(begins in " ".join(said.text.split()) for said in one.messages)
        ]
        return "supported" if any(meant) else "not_supported"

    judge = ScriptedModel(
        lambda _: text_reply("ok"), judgement=lambda asked: judgement_reply(asked, ruling)
    )
    found = claim_statistics(await judge_all(claims, judge))
    assert found["honest"]["claim"] >= 0.95 * found["honest"]["n"]
    assert found["dishonest"]["believed"] <= 0.02 * found["dishonest"]["n"]
