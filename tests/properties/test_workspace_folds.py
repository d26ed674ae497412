"""What a process knows of the workspace is the same from a kept state, at whatever entry it was kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from folded import kept
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.agent.approvals import ApprovalsFold
from bot.agent.languages import LanguagesFold
from bot.agent.schedules.due_tape import DueFold
from bot.agent.skills.skill_rights import SkillsFold
from bot.mcp_client.rights import RightsFold
from bot.runtime.sessions.undelivered import UndeliveredFold
from bot.tape.entries import event

EVENTS = {
    ApprovalsFold: "approval.asked approval.closed",
    DueFold: "schedule.due",
    LanguagesFold: "language.chosen language.seen",
    RightsFold: "mcp.right mcp.used mcp.told",
    SkillsFold: "skill.fetched skill.right skill.revoked skill.dropped skill.damaged",
    UndeliveredFold: "delivery.refused delivery.told",
}
NAME = st.sampled_from(["a", "everybody"])
NAMES = (
    "who session key answer schedule server tool scope digest text by chat used name description"
    " source path commit"
).split()
TIMES = [f"2026-0{month}-01T10:00:00+00:00" for month in range(1, 4)]
DATA = st.fixed_dictionaries(
    {
        **dict.fromkeys(NAMES, NAME),
        **dict.fromkeys(("number", "at", "files", "size"), st.integers(0, 1)),
        **dict.fromkeys(("people", "tools"), st.lists(NAME, max_size=2)),
        "language": st.sampled_from(["de", "ja", "", "xx"]),
        "decision": st.sampled_from(["always", "once", "allow", "never", "perhaps"]),
        "next": st.sampled_from([None, *TIMES]),
    }
)


@pytest.mark.parametrize("fold", EVENTS, ids=lambda fold: fold.__name__)
@settings(max_examples=examples(200))
@given(drawn=st.data(), cut=st.integers(1, 5))
def test_a_state_kept_at_any_point_goes_on_as_one_that_was_not(fold, drawn, cut):
    names = st.sampled_from(EVENTS[fold].split())
    history = drawn.draw(st.lists(st.tuples(names, DATA), max_size=8))
    whole = again = fold()
    for number, (name, data) in enumerate(history):
        if number == cut:
            again = kept(whole)
        entry = replace(event(name, data), id=number + 1, meta={"ts": TIMES[number % 3]})
        for one in {id(one): one for one in (whole, again)}.values():
            one.apply(entry)
    if fold is DueFold:
        later = datetime(2027, 1, 1, tzinfo=UTC)
        again = kept(again)
        due = dict(whole.take_due(later))
        # What was taken is due again for whoever opens it.
        assert due == dict(again.take_due(later)) == dict(kept(whole).take_due(later))
    else:
        assert vars(again) == vars(whole)
