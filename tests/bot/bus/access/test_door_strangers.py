"""Strangers and members at the door, with its real file or database: who comes in, and who never does."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from door_talk import OWNER, SILENCE, code_in, group, opened, private
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.bus import AccessDecision, AccessRequest, Address, BusClosed, Sender
from bot.bus.access.messages import NEWCOMER, OWNED
from bot.testing.manual_clock import ManualClock


class Chats:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.closed = False

    async def __call__(self, address: Address, text: str) -> None:
        if self.closed:
            raise BusClosed("the bus is closed")
        self.told.append((address.session, text))


async def test_a_stranger_in_a_group_meets_silence(home):
    async with opened(home) as access_control:
        assert await access_control.authorize(group(text="/start")) == SILENCE
    assert isinstance(home, str) or not (home / "access.json").exists()


async def test_what_comes_unasked_is_for_those_who_have_access_still(home):
    async with opened(home) as access_control:
        code = code_in(await access_control.authorize(private()))
        assert not await access_control.still_has_access(Address("telegram", "9"), "9")
        await access_control.approve(code)
        chats = [("telegram", "9"), ("telegram-work", "9"), ("web", "telegram.9")]
        for channel, person in chats:
            assert await access_control.still_has_access(Address(channel, person), person)
        await access_control.remove("telegram:9")
        for channel, person in chats:
            assert not await access_control.still_has_access(Address(channel, person), person)
        for channel, person in [("telegram", "1"), ("console", "local"), ("web", "local")]:
            assert await access_control.still_has_access(Address(channel, person), person)


async def test_a_stranger_comes_in_with_the_code_that_an_owner_approves(home):
    chats = Chats()
    async with opened(home, tell=chats) as access_control:
        code = code_in(await access_control.authorize(private()))
        assert await access_control.authorize(private()) == SILENCE
        paired = await access_control.approve(code.lower().replace("-", ""))
        assert paired is not None
        assert (paired.person, paired.name, paired.notified) == ("telegram:9", "Eve", True)
        assert await access_control.authorize(private()) == AccessDecision("member")
        assert await access_control.authorize(group()) == SILENCE
    assert chats.told == [("telegram:9", NEWCOMER)]


async def test_a_code_survives_a_restart_and_ends_after_ten_minutes(home):
    clock = ManualClock()
    async with opened(home, clock=clock) as access_control:
        code = code_in(await access_control.authorize(private()))
    clock.advance(599)
    async with opened(home, clock=clock) as access_control:
        assert code_in(await access_control.authorize(private())) == code
        clock.advance(1)
        assert await access_control.approve(code) is None
        assert code_in(await access_control.authorize(private())) != code


async def test_nothing_that_a_stranger_wrote_is_logged(home, caplog):
    caplog.set_level("DEBUG")
    async with opened(home, owners=()) as access_control:
        for text in ("a secret of mine", "/claim mysecretword", "ABCD-EFGH-JKMN"):
            code_in_reply = (await access_control.authorize(private(text))).reply or ""
            assert text not in code_in_reply
    assert "telegram:9" in caplog.text
    assert not any(word in caplog.text for word in ("secret", "Eve", "ABCD"))


NOBODY = {"owners": (), "allow": ()}


@pytest.mark.parametrize(
    ("settings", "knock", "role"),
    [
        (NOBODY, private(), None),
        (NOBODY, group(), None),
        ({"owners": ("telegram:9",)}, group(), "owner"),
        ({"owners": ("telegram:9",)}, private(channel="telegram-work"), "owner"),
        ({"owners": ("telegram:9",)}, private(channel="discord"), None),
        ({"allow": ("telegram:9",)}, private(), "member"),
        ({"allow": ("telegram:9",)}, group(), None),
        # A thread is allowed by its channel and its server, too.
        ({"allow": ("telegram:-7",)}, replace(group(), chat_ids=("-100", "-7")), "member"),
        ({"allow": ("telegram:-7",)}, private(), None),
        # An id that is none, and a name, let nobody in.
        (NOBODY, replace(private(), sender=Sender("telegram:1", "telegram:1")), None),
        ({"allow": ("telegram:9",)}, replace(private(), sender=Sender(" 9", "9")), None),
    ],
)
async def test_who_is_let_in_is_whom_the_settings_name_and_nobody_else(
    tmp_path, settings, knock, role
):
    async with opened(tmp_path, **settings) as access_control:
        assert (await access_control.authorize(knock)).role == role


async def test_a_stranger_gets_three_codes_an_hour_and_a_crowd_no_longer_list(home):
    clock, codes = ManualClock(), []
    async with opened(home, clock=clock) as access_control:
        for _ in range(120):
            verdict = await access_control.authorize(private())
            if verdict.reply and (code := code_in(verdict)) not in codes:
                codes.append(code)
            clock.advance(60)
        assert len(codes) == 6
        for number in range(100, 140):
            await access_control.authorize(private(user=str(number)))
        told = (await access_control.overview()).text()
        assert "which is the maximum" in told
        assert not any(code in told for code in codes)


async def test_whom_one_removed_is_not_brought_back_and_the_last_owner_stays(home):
    async with opened(home, owners=()) as access_control:
        await access_control.authorize(private(access_control.claim_code))
        code = code_in(await access_control.authorize(private(user="8")))
        for _ in range(2):
            assert await access_control.approve(code) is not None
        assert await access_control.remove("telegram:8") == "removed"
        assert await access_control.approve(code) is None
        assert await access_control.remove("telegram:9") == "last owner"


_texts = st.one_of(
    st.none(),
    st.text(max_size=30),
    st.sampled_from(["/start", "/pair here", "/pair telegram:9", OWNED, "yes", "{told}"]),
    st.text("ABCDEFGH23456789", min_size=12, max_size=12).map("/claim {}".format),
)


_knocks = st.builds(
    lambda user, channel, name, private, chat, text: AccessRequest(
        Address(channel, chat), Sender(user, name), private, (chat,), text
    ),
    st.sampled_from(["7", "8", "9", "telegram:1", "01", " 1", "-200", "1\n"]),
    st.sampled_from(["telegram", "telegram-work", "discord"]),
    st.sampled_from(["Eve", "1", "-100", "telegram:1", "owner"]),
    st.booleans(),
    st.sampled_from(["7", "9", "-200", "1"]),
    _texts,
)


@given(
    knocks=st.lists(st.tuples(_knocks, st.integers(0, 900)), max_size=25),
    owners=st.sampled_from([(), (OWNER,)]),
)
@settings(max_examples=examples(150))
def test_no_sequence_of_strangers_messages_ever_yields_a_role(knocks, owners):
    async def run(home: Path) -> None:
        clock, told = ManualClock(), "nothing"
        allow = ("telegram:-100", "discord:2")
        async with opened(home, clock=clock, owners=owners, allow=allow) as access_control:
            for knock, seconds in knocks:
                text = knock.text and knock.text.replace("{told}", told)
                verdict = await access_control.authorize(replace(knock, text=text))
                assert verdict.role is None
                assert verdict.reply != OWNED
                assert knock.private or verdict.reply is None
                told = verdict.reply.split("pair ")[-1][:9] if verdict.reply else told
                clock.advance(seconds)
            listing = await access_control.overview()
        assert (listing.owners, listing.members, listing.chats) == ((), (), ())
        assert len(listing.pending) <= 20

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(run, Path(folder))
