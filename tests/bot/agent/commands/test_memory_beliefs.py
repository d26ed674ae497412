"""Beliefs as people meet them: concluded by the model, listed, explained, confirmed, ended, cleared."""

from __future__ import annotations

from typing import Any

import pytest
from folded import fold_entries

from bot.memory.gate.belief_updates import awaits_judge
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    judgement_reply,
    text_reply,
    tool_call_reply,
)
from bot.testing.waiting import until
from tests.bot.agent.believing import CONCLUDE
from tests.bot.agent.telling import DAY, pressed, results, say, shown, talk

NONE = "There are no beliefs yet."
SAID = "A walk got me unstuck today."


async def number_of(host: Host, words: str) -> int:
    entries = await host.tape()
    return next(e.id for e in entries if e.kind == "message" and words in str(e.payload))


@pytest.fixture
async def chat(tmp_path):
    steps: list[Any] = []
    scripted = ScriptedModel(
        lambda _: steps.pop(0) if steps else text_reply("ok"),
        consolidation=lambda _: consolidation_reply("[2026-02-10 10:00] Ada spoke of walks."),
    )
    async with session_host(
        tmp_path, scripted, bounds=HostLimits(window=10), tools=(CONCLUDE,)
    ) as host:
        await say(host, SAID)
        yield host, steps


async def concluded(chat: Any, text: str, *entries: int) -> str:
    """Have the model conclude something from entries; return what it is told."""
    host, steps = chat
    steps.append(tool_call_reply(("belief_add", {"text": text, "entries": list(entries)})))
    await say(host, "What do you make of it?")
    return (await results(host))[-1]


async def test_what_the_model_concludes_is_explained_confirmed_and_ended(chat):
    host, _ = chat
    first = await number_of(host, "unstuck")
    await say(host, "Again a walk helped.")
    text = "Walks help Ada when she is stuck."
    told = await concluded(chat, text, first, await number_of(host, "helped"))
    assert told.startswith("Kept as p1")
    host.clock.advance(20 * DAY)
    line = f"**p1.** {text} (conclusion; not certain (0.57), last confirmed 2 weeks ago)"
    assert line in await say(host, "/memory beliefs")
    why = (await say(host, "/memory why p1")).splitlines()
    assert why[1].startswith("Not used yet: a conclusion, not certain (0.57)")
    assert why[4] == f"- Ada, message of 2026-02-10 10:00, entry #{first}: “{SAID}”"
    assert why[-1].startswith("Decision of 2026-02-10 10:00 (the assistant): approved; a person's")
    await talk(
        host,
        ("/memory accept p1", f"- Confirmed: **p1.** {text}"),
        ("/memory beliefs", ", confirmed today"),
        ("/memory why p1", "Believed: a conclusion"),
        ("/memory drop p1, p7", f"- Ended: **p1.** {text}\n- There is no p7."),
        ("/memory beliefs", NONE),
        ("/memory why p1", "Ended: a conclusion", "revalidated: no longer valid."),
    )
    group = {"chat": "-5", "private": False, "role": "member"}
    await talk(host, ("/memory drop p1", "only an owner"), **group)


@pytest.mark.parametrize("ruling", ["supported", "not_supported", None])
async def test_a_conclusion_is_in_no_prompt_until_a_judge_or_the_person_says_yes(tmp_path, ruling):
    text = "Walks help Ada."
    steps = iter([tool_call_reply(("belief_add", {"text": text}))])
    model = ScriptedModel(
        lambda _: next(steps, text_reply("ok")),
        judgement=ruling and (lambda request: judgement_reply(request, lambda _: ruling)),
    )

    async def judged() -> bool:
        beliefs = fold_entries(await host.tape("person:fake:7")).compartments.patterns.values()
        return not any(map(awaits_judge, beliefs))

    async with session_host(tmp_path, model, tools=(CONCLUDE,)) as host:
        await say(host, SAID)
        if ruling is not None:
            host.clock.advance(60)
            await until(judged)
        for command, believed in (("/new now", ruling == "supported"), ("/memory accept p1", True)):
            await say(host, command)
            await talk(host, ("/new now",), ("hello",))
            assert (text in shown(model)) is believed
    claims = [str(one.messages[-1]["content"]) for one in model.requests_for("judgement")]
    assert all(text in one and SAID in one for one in claims)
    assert len(claims) == (ruling is not None)


async def test_what_rests_on_forgotten_words_is_believed_no_longer(chat):
    host, _ = chat
    await concluded(chat, "Movement helps Ada think.", await number_of(host, "unstuck"))
    await say(host, "/memory forget unstuck")
    await talk(host, (pressed(host)[0][1],), ("/memory beliefs", NONE))


@pytest.mark.parametrize("by_tool", [False, True])
async def test_a_clearing_ends_values_beliefs_and_notes_and_what_everybody_reads_stays(
    chat, by_tool
):
    host, steps = chat
    await concluded(chat, "Walks help Ada.", await number_of(host, "unstuck"))
    await talk(
        host,
        *(("/reference set office Bonn",), ("/reference share office",)),
        *(("/reference set courier Hermes",), ("/problem note ask when?",)),
        ("/memory clear", "2 shared values, 1 belief, the working notes of its problems"),
    )
    if by_tool:
        steps.append(tool_call_reply(("memory_clear", {})))
        await say(host, "wipe it")
    else:
        told = await say(host, "/memory clear yes")
        assert all(
            part in told
            for part in ("/reference rollback KEY N", "/memory accept p1", "cannot be restored")
        )
    await talk(host, ("/memory beliefs", NONE), ("/problem show", "no notes"), ("hello",))
    prompt = shown(host.services.agent.model)
    assert "office: Bonn" in prompt
    assert "Hermes" not in prompt.replace("/reference set courier Hermes", "")
    await talk(
        host,
        ("/reference rollback courier 1", "Hermes"),
        ("/memory accept p1", "- Confirmed: **p1.**"),
    )
