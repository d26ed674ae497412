"""How the bot gets its owner at the door, with its real file or database, and who does not become that."""

from __future__ import annotations

import anyio
import pytest
from door_talk import SILENCE, code_in, group, opened, private

from bot.bus import AccessDecision
from bot.bus.access.codes import ClaimRateLimiter
from bot.bus.access.control import MANY_WRONG
from bot.bus.access.messages import OWNED, WRONG_CLAIM
from bot.testing.manual_clock import ManualClock


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


async def test_a_claim_that_comes_again_is_answered_again(home):
    async with opened(home, owners=()) as access_control:
        claim = private(f"/claim {access_control.claim_code}")
        assert (
            await access_control.authorize(claim)
            == await access_control.authorize(claim)
            == AccessDecision(None, OWNED)
        )


async def test_there_is_no_claim_where_the_settings_name_an_owner(home):
    async with opened(home) as access_control:
        assert access_control.claim_code is None


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


async def test_every_run_has_a_claim_code_of_its_own(tmp_path):
    codes = []
    for _ in range(2):
        async with opened(tmp_path, owners=()) as access_control:
            codes.append(access_control.claim_code)
    assert len(set(codes)) == 2


async def test_a_claim_in_a_group_is_none(home):
    async with opened(home, owners=()) as access_control:
        assert await access_control.authorize(group(text=access_control.claim_code)) == SILENCE
        assert access_control.claim_code is not None


async def test_of_many_who_claim_at_once_one_wins(home):
    won = []

    async with opened(home, owners=()) as access_control:
        code = access_control.claim_code

        async def claim(user: str) -> None:
            verdict = await access_control.authorize(private(code, user=user))
            if verdict.reply == OWNED:
                won.append(user)

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(claim, str(number))
        listing = await access_control.overview()
    assert [f"telegram:{user}" for user in won] == [one.person for one in listing.owners]
    assert len(won) == 1


async def test_a_person_may_guess_the_claim_five_times_an_hour(home):
    clock = ManualClock()
    async with opened(home, owners=(), clock=clock) as access_control:
        code = access_control.claim_code
        for _ in range(ClaimRateLimiter.PER_PERSON):
            assert await access_control.authorize(
                private("/claim ABCD-EFGH-JKMN")
            ) == AccessDecision(None, WRONG_CLAIM)
        assert await access_control.authorize(private(code)) == SILENCE
        assert await access_control.authorize(private(code, user="8")) == AccessDecision(
            None, OWNED
        )


async def test_a_person_may_guess_again_after_an_hour(home):
    clock = ManualClock()
    async with opened(home, owners=(), clock=clock) as access_control:
        for _ in range(ClaimRateLimiter.PER_PERSON):
            await access_control.authorize(private("/claim wrong"))
        assert await access_control.authorize(private(access_control.claim_code)) == SILENCE
        clock.advance(ClaimRateLimiter.WITHIN)
        assert await access_control.authorize(private(access_control.claim_code)) == AccessDecision(
            None, OWNED
        )


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


async def test_a_member_may_claim_and_a_members_message_that_looks_like_a_code_is_one(home):
    async with opened(home, owners=(), allow=("telegram:9",)) as access_control:
        assert await access_control.authorize(private("ABCD-EFGH-JKMN")) == AccessDecision("member")
        assert await access_control.authorize(private("/claim ABCD")) == AccessDecision(
            None, WRONG_CLAIM
        )
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
