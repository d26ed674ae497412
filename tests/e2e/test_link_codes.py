"""Two channels are joined only by a fresh code that both sides confirm, each in a private chat."""

from __future__ import annotations

import pytest
from link_home import ADA, ELSE, home

from bot.bus import Sender
from bot.memory.session.scope.identities import IDENTITIES_TAPE, MAX_FAILED_CLAIMS


async def test_nobody_is_joined_before_both_have_said_so(tmp_path):
    async with home(tmp_path) as here:
        await here.ask(ADA, "remember: I like zebras")
        code = await here.code(ADA)
        told = await here.ask("other:666", f"/link {code} yes", name="Mallory")
        assert "with that of `N7` on fake" in told
        assert "zebras" not in await here.prompt("other:666", "LOOK")
        # Neither whom it was not shown to can confirm it, nor somebody in their group.
        for where, more in (("other:666", {}), ("third:7", {}), ("fake:g", {"private": False})):
            for command in ("/link confirm", "/link confirm 4"):
                assert "Linked" not in await here.ask(where, command, **more)
        question = await here.until_told(ADA, "sent the code")
        assert "`Mallory` on other" in question.text
        confirm, refuse = (one.command for one in question.buttons)
        assert "Refused" in await here.ask(ADA, refuse)
        assert "refused" in (await here.until_told("other:666", "refused")).text
        assert "Nothing to confirm" in await here.ask(ADA, confirm)
        assert (await here.people()).moves == {}


async def test_a_code_is_good_once_for_ten_minutes_and_only_the_newest(tmp_path):
    async with home(tmp_path) as here:
        older, newer = await here.code(ADA), await here.code(ADA)
        assert "This code is not valid" in await here.ask(ELSE, f"/link {older} yes")
        assert "This chat made that code" in await here.ask(ADA, f"/link {newer} yes")
        assert "Confirm it there" in await here.ask(ELSE, f"/link {newer.lower()} yes")
        assert "This code is not valid" in await here.ask("third:5", f"/link {newer} yes")
        # A claim that waits too long is void, and so is a code.
        here.clock.advance(601)
        assert "Nothing to confirm" in await here.ask(ADA, "/link confirm")
        code = await here.code(ADA)
        here.clock.advance(601)
        assert "This code is not valid" in await here.ask(ELSE, f"/link {code} yes")
        assert (await here.people()).moves == {}


async def test_a_no_to_one_question_is_none_to_another(tmp_path):
    async with home(tmp_path) as here:
        await here.ask(ADA, "/link ABCD-2345")
        is_it_you = here.told(ADA)[-1].buttons
        await here.ask(ELSE, f"/link {await here.code(ADA)} yes")
        question = await here.until_told(ADA, "sent the code")
        assert "Nothing to confirm" in await here.ask(ADA, is_it_you[1].command)
        assert "Linked with" in await here.ask(ADA, question.buttons[0].command)


async def test_guessing_is_bounded_also_over_a_restart_and_keeps_nobody_else_out(tmp_path):
    async with home(tmp_path) as here:
        code = await here.code(ADA)
        for number in range(MAX_FAILED_CLAIMS):
            assert "This code is not valid" in await here.ask(
                "other:666", f"/link ABCD-234{number + 2} yes"
            )
    async with home(tmp_path) as here:
        assert "an hour" in await here.ask("other:666", f"/link {code} yes")
        assert len(await here.host.tape(IDENTITIES_TAPE)) == MAX_FAILED_CLAIMS + 3
        assert "Confirm it there" in await here.ask(ELSE, f"/link {code} yes")


async def test_a_code_is_on_the_tape_of_who_is_who_in_no_readable_form(tmp_path):
    async with home(tmp_path) as here:
        code = await here.code(ADA)
        await here.ask(ELSE, f"/link {code} yes")
        kept = str([one.payload for one in await here.host.tape(IDENTITIES_TAPE)])
        assert code not in kept
        assert code.replace("-", "") not in kept


@pytest.mark.parametrize(
    "command", ["/link", "/link ABCD-2345", "/link confirm", "/unlink", "/unlink yes"]
)
async def test_in_a_group_nothing_is_joined_or_parted(tmp_path, command):
    async with home(tmp_path) as here:
        group = {"sender": Sender("7", "Ada"), "private": False, "role": "owner"}
        assert "private chat" in await here.ask("fake:g", command, **group)
        assert await here.host.tape(IDENTITIES_TAPE) == []
