"""How the bot gets its owner at the door, with its real file or database, and who does not become that."""

from __future__ import annotations

import pytest
from door_talk import code_in, group, opened, private

from bot.bus import AccessDecision
from bot.bus.access.codes import ClaimRateLimiter
from bot.bus.access.control import MANY_WRONG
from bot.bus.access.messages import OWNED, WRONG_CLAIM


@pytest.mark.parametrize("form", ["{}", "/start {}", "/claim {}"])
async def test_the_claim_code_makes_its_sender_the_owner_once(home, form):
    async with opened(home, owners=()) as access_control:
        code = access_control.claim_code
        assert code is not None
        assert await access_control.authorize(private(form.format(code))) == AccessDecision(
            None, OWNED
        )
        assert access_control.claim_code is None
        assert await access_control.authorize(private()) == AccessDecision("owner")
        assert (await access_control.authorize(private(form.format(code), user="8"))).role is None
        assert await access_control.authorize(group()) == AccessDecision("owner")
    async with opened(home, owners=()) as access_control:
        assert access_control.claim_code is None
        assert (await access_control.authorize(private(code, user="8"))).role is None
        assert await access_control.authorize(private()) == AccessDecision("owner")


async def test_each_platform_has_an_owner_of_its_own_to_be_claimed(home):
    async with opened(home, owners=()) as access_control:
        code = access_control.claim_code_for("telegram")
        assert await access_control.authorize(private(f"/claim {code}")) == AccessDecision(
            None, OWNED
        )
        assert access_control.claim_code_for("telegram") is None
        assert access_control.claim_code_for("discord") == code
        other = private(f"/claim {code}", channel="discord")
        assert await access_control.authorize(other) == AccessDecision(None, OWNED)
        assert access_control.claim_code_for("discord") is None


async def test_a_crowd_that_guesses_does_not_keep_the_owner_out_and_is_logged_once(home, caplog):
    async with opened(home, owners=()) as access_control:
        for number in range(ClaimRateLimiter.MANY * 2):
            guess = private(
                "/claim ABCD-EFGH-JKMN", user=str(100 + number // ClaimRateLimiter.PER_PERSON)
            )
            assert await access_control.authorize(guess) == AccessDecision(None, WRONG_CLAIM)
        warnings = [record for record in caplog.records if record.levelname == "WARNING"]
        assert [record.getMessage() for record in warnings] == [MANY_WRONG]
        assert await access_control.authorize(private(access_control.claim_code)) == AccessDecision(
            None, OWNED
        )


async def test_without_an_owner_a_stranger_is_told_how_the_bot_gets_one(home):
    async with opened(home, owners=()) as access_control:
        told = await access_control.authorize(private("/start"))
        assert "claim code" in (told.reply or "")
        assert await access_control.approve(code_in(told)) is not None
        assert await access_control.authorize(private()) == AccessDecision("member")
        assert access_control.claim_code is not None
