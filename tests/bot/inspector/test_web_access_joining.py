"""Whoever logs in by a code from a chat has one memory there and in the browser."""

from __future__ import annotations

from bot.bus import Address, Sender

ME = Sender("fake.7", "Ada")


async def log_in(rig, session="fake:1", **who):
    (answer,) = await rig.talk(session, "/login", **who)
    assert f"{rig.url}/login" in answer
    assert "Give it to nobody" in answer
    code = answer.split("Your code: `")[1].partition("`")[0]
    return (await rig.web.logins.log_in_with_code(code)).visitor


async def test_a_code_from_a_chat_logs_in_and_both_have_one_memory(rig):
    await rig.talk("fake:1", "/memory add I live in Lisbon")
    visitor = await log_in(rig)
    assert (visitor.id, visitor.role) == ("fake.7", "owner")
    (shown, _) = await rig.talk("web:fake.7", "/memory", "/memory add I keep bees", sender=ME)
    assert "Lisbon" in shown
    (shown,) = await rig.talk("fake:1", "/memory")
    assert "bees" in shown


async def test_whoever_parted_the_two_stays_apart_at_the_next_login(rig):
    await log_in(rig)
    linker = rig.web.scopes.identity_linker
    assert linker.people.members("fake:7") == ("fake:7", "web:fake.7")
    await rig.web.scopes.apply_move(await linker.unlink("fake:7", "k1"))
    await log_in(rig)
    assert linker.people.members("fake:7") == ("fake:7",)


async def test_a_member_logs_in_as_a_member_and_a_group_gets_no_code(rig):
    ben = {"sender": Sender("8", "Ben"), "role": "member"}
    (group,) = await rig.talk("telegram:-100", "/login", private=False, **ben)
    assert "private chat" in group
    assert "Your code" not in group
    assert (await log_in(rig, "telegram:8", **ben)).role == "member"


async def test_nobody_gets_a_code_for_somebody_else_by_looking_at_their_chat(rig):
    telegram, web = rig.channel("telegram"), rig.channel("web")
    # Also where their id there is the one of somebody on this channel.
    for looks in (Sender("local", "Root"), Sender("8", "Root")):
        await telegram.send("/login", chat="8", sender=looks, via=Address("web", "local"))
    await rig.host.wait_for_pending(0)
    assert not rig.web.logins.login_store.fold.one_time_logins
    told = [one.text for one in (*telegram.answers, *web.answers)]
    assert not [text for text in told if "Your code" in text]
