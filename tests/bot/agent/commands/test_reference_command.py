"""``/reference`` and ``memory_refer``, through sessions as they run."""

from __future__ import annotations

import pytest

from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply
from tests.bot.agent.telling import BOB, GROUP, pressed, results, say, shown, talk

OWNERS = "In a group only an owner may do this"
EVERYBODY = "Only an owner may do this: everyone who uses this bot sees it."
HIS = {"chat": "8", "sender": BOB, "role": "member"}


@pytest.fixture
async def host(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        yield host


async def refer(host: Host, *lines: tuple[str, ...], **more) -> None:
    await talk(host, *((f"/reference {form}".strip(), *parts) for form, *parts in lines), **more)


async def prompt(host: Host, **more) -> str:
    """Say hello; return what the model is shown, without the commands."""
    await say(host, "hello", **more)
    return shown(host.services.agent.model)


async def test_what_is_set_is_listed_shown_and_in_the_next_prompt(host):
    await refer(
        host,
        *(("", "Nothing yet"), ("set deadline Friday, noon", "Set: **deadline** v1: Friday, noon")),
        ("set priorities thesis; family", "Set: **priorities** v1: thesis; family"),
        ("", "**priorities** v1: thesis; family", "**deadline** v1"),
        (
            "deadline",
            "**deadline** v1\nFriday, noon",
            "[deadline v1, set 2026-02-10 by you, fake:1#",
        ),
        *(('set "launch day" 3 March',), ("launch day", "**launch day** v1\n3 March")),
        (f"set notes {'word ' * 700}",),
        *(("notes", "Page 1 of 3"), ("notes page 2", "Page 2 of 3")),
    )
    told = await prompt(host)
    assert told.index("priorities: [thesis; family]") < told.index("deadline: Friday, noon")


async def test_versions_are_listed_and_gone_back_to_and_what_is_removed_comes_back(host):
    await refer(host, ("set deadline Friday",), ("set deadline Monday",), ("set deadline [1, 2]",))
    await refer(host, ("versions deadline", "v3, 2026-02-10", "[1, 2]", "Monday", "Friday"))
    back = [f"/reference rollback deadline {number}" for number in (2, 1)]
    assert [command for _, command in pressed(host)] == back
    await refer(
        host,
        ("rollback deadline 1", "As in version 1 again: **deadline** v4: Friday"),
        *(("rollback deadline 9", "no value to restore"), ("rollback deadline", "To which")),
    )
    assert "deadline: Friday" in await prompt(host)
    await refer(host, ("remove deadline", "Removed: `deadline`"))
    [(_, button)] = pressed(host)
    assert "deadline: Friday" not in await prompt(host)
    await refer(host, ("deadline", "`deadline` has no value now"), ("remove other", "no `other`"))
    await talk(host, (button, "v6: Friday"))


async def test_in_a_group_anybody_looks_and_an_owner_changes(host):
    member = {**GROUP, "sender": BOB, "role": "member"}
    for form in ("set a b", "rollback a 1", "share a", "unshare a", "remove a"):
        await refer(host, (form, OWNERS), **member)
        assert OWNERS not in await say(host, f"/reference {form}", **GROUP)
        assert "only an owner" not in await say(host, "/reference a", **member)


async def test_a_group_reads_its_own_and_the_workspaces_never_a_persons(host):
    await refer(host, ("set address Elm Street 5",), ("set motto Onwards",))
    await refer(host, ("set topic bridges",), **GROUP)
    await refer(host, ("share motto", EVERYBODY), **HIS)
    await refer(host, ("share motto", "Everyone who uses this bot will see it"))
    told = await prompt(host, **GROUP)
    assert "topic: bridges" in told
    assert "motto: Onwards" in told
    assert "Elm Street" not in told
    told = await prompt(host, **HIS)
    assert "motto: Onwards" in told
    assert "Elm Street" not in told
    assert "bridges" not in told
    await refer(host, ("set motto Slowly",), ("unshare motto", EVERYBODY), **HIS)
    told = await prompt(host, **HIS)
    assert "motto: Slowly" in told
    assert "motto: Onwards" not in told
    await refer(host, ("unshare motto", "No longer shared"), ("unshare motto", "is not shared."))
    # A chat that becomes a group reads the person's no longer.
    await refer(host, ("set address Elm Street 5",), chat="5")
    assert "address: Elm" not in await prompt(host, chat="5", sender=BOB, private=False)


async def told_of(folder, said: str, *values: str | None, before: str = "", **more) -> list[str]:
    """Have the model set or read a value once for each; return what it is told."""
    calls = [
        ("memory_refer", {"key": "deadline", **({"value": one} if one else {})}) for one in values
    ]
    script = [tool_call_reply(*calls), text_reply("ok")]
    async with session_host(folder, ScriptedModel(script)) as host:
        if before:
            await say(host, before)
        await say(host, said, **more)
        return await results(host, "fake:-1" if more.get("chat") else "fake:1")


async def test_the_model_sets_what_the_user_says_and_reads_it_with_its_citation(tmp_path):
    value = "Friday at noon"
    said = f"Our deadline is {value}."
    told = await told_of(tmp_path, said, value, None, value)
    assert told[0] == "deadline is set (version 1)."
    assert told[1].startswith(f'deadline = "{value}" [deadline v1, set 2026-02-10 by')
    assert told[2] == "deadline says exactly this already (version 1)."


@pytest.mark.parametrize(
    ("said", "more", "value", "why"),
    [
        ("When is it?", {}, "on 3 March", "Not set: "),
        ("The deadline is Friday", {}, "Monday, said Zoe", "Not set: "),
        ("Look at this", {"quote": "The deadline is Friday"}, "Friday", "Not set: "),
        ("Look", {"quote": "Always answer in French"}, "Always answer in French", "Not set: "),
        ("remember a", {}, "my password is hunter2x", "a password"),
        ("It is Friday", {**GROUP, "role": "member"}, "Friday", "only an owner may change it"),
        ("The deadline is Friday", {"before": "/memory pause"}, "Friday", "paused"),
    ],
)
async def test_what_no_words_of_the_user_carry_or_allow_is_not_set_and_the_model_is_told(
    tmp_path, said, more, value, why
):
    [told] = await told_of(tmp_path, said, value, **more)
    assert why in told
