"""Models that answer in every wrong way, and people who ask for what is not theirs."""

from __future__ import annotations

import pytest
from folded import fold_entries
from memory_accomplices import INNOCENT, Accomplice, Cast, home_facts

from bot.testing.host import Host, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_change,
    text_reply,
    tool_call_reply,
)

FACTS = ["I am allergic to penicillin", "My daughter is called Nora", "I play the cello"]
FACTS += ["My car is a red Volvo", "I work at Statkraft"]


TWISTED = (
    "I am not allergic to penicillin",
    "My daughter is called Nero",
    "I play the tuba",
    "My car is a blue Volvo",
    "I worked at Equinor",
)


def change(fact: int, text: str | None = None) -> dict[str, object]:
    return (
        {"op": "end", "facts": [fact]}
        if text is None
        else {"op": "change", "facts": [fact], "text": text}
    )


SAVES: dict[str, object] = {
    "drops-all": {"changes": [change(one) for one in range(1, 6)]},
    "nothing": {"changes": [change(one, "(nothing)") for one in range(1, 6)]},
    "headings-alone": {"changes": [change(1, "# Facts\n## None")]},
    "the-whole-text": {"content": "- I had a walk", "removed": FACTS},
    "not-json": "{changes: nothing}",
    "huge": {"changes": [change(1, "x")] * 10_000},
    "denies-each": {"changes": [change(n, f"It is not true: {one}") for n, one in enumerate(FACTS, 1)]},
    "twists-each": {"changes": [change(n, one) for n, one in enumerate(TWISTED, 1)]},
    "twists-one": {"changes": [change(1, TWISTED[0])]},
    "one-for-another": {"changes": [change(1, FACTS[1]), change(2, FACTS[0]), change(3)]},
    "merges-into-less": {"changes": [change(1, FACTS[0]), *(change(one) for one in range(2, 6))]},
}  # fmt: skip


@pytest.mark.parametrize("kind", SAVES)
async def test_a_save_that_drops_or_twists_what_is_known_changes_nothing(tmp_path, kind):
    cast = Cast(1, group=False)
    steps = [
        text_reply("ok"),
        tool_call_reply(("memory_save", SAVES[kind])),
        text_reply("ok"),
        text_reply("ok"),
    ]  # type: ignore[arg-type]
    async with session_host(tmp_path, ScriptedModel(steps)) as host:
        for fact in FACTS:
            await cast.say(host, "ada", f"/memory add {fact}")
        await cast.say(host, "ada", INNOCENT)
        await cast.say(host, "ada", "What a day!")
        assert (await home_facts(host, cast))[:5] == FACTS


async def test_what_was_recalled_makes_a_fact_no_surer(tmp_path):
    """Neither the tool's result nor the answer that repeats it is a second source."""
    ops = [
        fact_change("", quote, op="end", facts=[1])
        for number in (1, 2, 3, 4)
        for quote in ("I live in Bonn", "You live in Bonn.", "lives in Bonn")
    ]
    recalled = tool_call_reply(("memory_recall", {"query": "Bonn", "days": 99}))
    steps = [text_reply("ok"), recalled, text_reply("You live in Bonn.")]
    answers = [
        consolidation_reply("Talk.", fact_change("The user lives in Bonn.", "I live in Bonn")),
        consolidation_reply("Talk.", *ops),
    ]
    cast = Cast(1, group=False)
    async with session_host(tmp_path, ScriptedModel(steps, consolidation=answers)) as host:
        for text in ("I live in Bonn.", "/new", "Look it up, please.", "/new"):
            await cast.say(host, "ada", text)
        facts = fold_entries(await host.tape("person:fake:11")).active()
    [fact] = [one for one in facts if not one.ends]  # An end waits for a judge's or her own yes.
    assert (len(fact.evidence), fact.confidence) == (1, 0.8)


async def _two_people(host: Host, cast: Cast) -> None:
    await cast.say(
        host, "ada", "/memory add My safe stands behind the mirror", chat=cast.id_of("ada")
    )
    await cast.say(host, "ada", "/memory add I like tea")
    await cast.say(host, "bob", "/memory add I like cocoa")
    await cast.say(host, "bob", "hello")


TAKEN = [
    "/memory undo", "/memory accept 1", "/memory drop 1", "/memory drop all", "/memory pause", "/memory resume",
    "/memory clear", "/memory clear yes", "/memory forget 1", "/memory forget tea", "/memory share 1",
    "/memory unshare w1", "/memory export", "/memory edit 1 I like poison", "/memory edit w1 I like poison",
    "/new", "/new now", "/MEMORY CLEAR YES", "/memory@bot clear yes", " /memory clear yes", "/memory  undo",
]  # fmt: skip


async def test_a_member_takes_nothing_from_a_group(tmp_path):
    model = Accomplice().model()
    cast = Cast(1, group=True)
    async with session_host(tmp_path, model) as host:
        await _two_people(host, cast)
        before = await home_facts(host, cast)
        assert len(before) == 2
        for command in TAKEN:
            told = await cast.say(host, "bob", command)
            assert await home_facts(host, cast) == before, command
            assert not fold_entries(await host.tape("workspace:shared")).active(), command
            assert await cast.say(host, "ada", "hello") == "ok", command
            assert "mirror" not in told, command
            assert not fold_entries(await host.tape(f"fake:{cast.chat}")).paused, command


SNOOPING = [
    "/memory", "/memory 1", "/memory 2", "/memory why 1", "/memory why w1", "/memory search mirror",
    "/memory search safe", "/memory history", "/memory pending", "/memory export", "/tape search mirror",
    "/tape", "/status", "/memory why person:fake:11", "/memory search person:fake:11",
]  # fmt: skip


@pytest.mark.parametrize("group", [True, False], ids=["in a group", "alone with the bot"])
async def test_nobody_reads_what_the_owner_said_in_private(tmp_path, group):
    model = Accomplice().model()
    cast = Cast(1, group=True)
    async with session_host(tmp_path, model) as host:
        await _two_people(host, cast)
        chat = cast.chat if group else cast.id_of("bob")
        for command in SNOOPING:
            told = await cast.say(host, "bob", command, chat=chat)
            assert "mirror" not in told.replace(command, ""), command
            await cast.say(host, "bob", "What do you know?", chat=chat)
            assert "behind the mirror" not in str(model.requests_for()[-1].messages), command
    for request in model.requests_for():
        assert "behind the mirror" not in str(request.messages)
