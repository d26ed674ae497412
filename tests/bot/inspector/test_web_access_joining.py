"""Whoever logs in by a code from a chat has one memory there and in the browser."""

from __future__ import annotations

from contextlib import asynccontextmanager

from web_rig import URL

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.link import link_commands
from bot.agent.commands.login import login_command
from bot.bus import Address, Sender
from bot.bus.access.control import open_access_control
from bot.core.errors import TapeWriteError
from bot.inspector.access.logins import LoginService
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel

ADA = Sender("42", "Ada")


@asynccontextmanager
async def program(folder, *, allow=("telegram:8",)):
    """A program with ``/login`` and ``/link``, as the composition root joins them."""
    made: list[LoginService] = []

    async def offer(*given):
        return await made[0].create_login_code(*given)

    made_host = []

    async def tell(answer):
        await made_host[0].bus.send(answer)

    async def language_of(identity):
        return await made_host[0].services.languages.of(identity)

    commands = builtin_commands([login_command(offer), *link_commands(tell, language_of)])
    async with (
        session_host(folder, ScriptedModel(), commands=commands) as host,
        open_access_control(
            folder / "door", owners=["telegram:42"], allow=allow, clock=host.clock
        ) as access_control,
    ):
        made_host.append(host)
        made.append(LoginService(host.store, access_control, host.clock, URL, host.services.scopes))
        yield host, made[0]


async def say(channel, text, *, sender=ADA, private=True, role="owner", chat=None):
    sent = await channel.send(
        text, chat=chat or sender.id, sender=sender, private=private, role=role
    )
    return await channel.wait_for_answer(sent)


def code_in(answer: str) -> str:
    return answer.split("Your code: `")[1].partition("`")[0]


async def test_a_code_from_a_chat_logs_in_and_both_have_one_memory(tmp_path):
    async with program(tmp_path) as (host, logins):
        telegram, web = host.add_channel("telegram"), host.add_channel("web")
        await say(telegram, "/memory add I live in Lisbon")
        answer = await say(telegram, "/login")
        assert f"{URL}/login" in answer
        assert "Give it to nobody" in answer
        opened = await logins.log_in_with_code(code_in(answer))
        assert (opened.visitor.id, opened.visitor.role) == ("telegram.42", "owner")
        me = Sender("telegram.42", "Ada")
        assert "Lisbon" in await say(web, "/memory", sender=me)
        await say(web, "/memory add I keep bees", sender=me)
        assert "bees" in await say(telegram, "/memory")
        people = host.services.scopes.identity_linker.people
        assert people.members("telegram:42") == ("telegram:42", "web:telegram.42")
        assert not people.unfinished


async def test_whoever_parted_the_two_stays_apart_at_the_next_login(tmp_path):
    async with program(tmp_path) as (host, logins):
        telegram = host.add_channel("telegram")
        await logins.log_in_with_code(code_in(await say(telegram, "/login")))
        asked = await say(telegram, "/unlink")
        assert "unlinks this channel" in asked
        since = host.services.scopes.identity_linker.people.last_change_id("telegram:42")
        await say(telegram, f"/unlink yes {since}")
        await logins.log_in_with_code(code_in(await say(telegram, "/login")))
        people = host.services.scopes.identity_linker.people
        assert people.members("telegram:42") == ("telegram:42",)


async def test_a_link_that_is_under_way_is_left_alone(tmp_path):
    async with program(tmp_path) as (host, logins):
        telegram = host.add_channel("telegram")
        people = host.services.scopes.identity_linker.people
        shown = await say(telegram, "/link")
        await logins.log_in_with_code(code_in(await say(telegram, "/login")))
        assert people.members("telegram:42") == ("telegram:42",)
        assert people.offers["telegram:42"].entry
        assert "/link" in shown
        host.clock.advance(601)
        await logins.log_in_with_code(code_in(await say(telegram, "/login")))
        assert people.members("telegram:42") == ("telegram:42", "web:telegram.42")


async def test_who_is_at_the_machine_has_one_memory_at_the_terminal_and_in_the_browser(tmp_path):
    async with program(tmp_path) as (host, logins):
        link = await logins.create_login_link("local", "Ada")
        await logins.log_in_with_link(link.partition("#")[2])
        people = host.services.scopes.identity_linker.people
        assert people.members("console:local") == ("console:local", "web:local")


async def test_a_memory_that_cannot_be_joined_keeps_nobody_out(tmp_path, monkeypatch, caplog):
    async with program(tmp_path) as (host, logins):
        code = code_in(await say(host.add_channel("telegram"), "/login"))
        create = host.store.create_tape

        async def full(tape, *rest, **more):
            if tape == "workspace:people":
                raise TapeWriteError("the disk is full")
            return await create(tape, *rest, **more)

        monkeypatch.setattr(host.store, "create_tape", full)
        assert (await logins.log_in_with_code(code)).visitor.id == "telegram.42"
        assert "could not be linked" in caplog.text


async def test_a_member_logs_in_as_a_member_and_a_group_gets_no_code(tmp_path):
    async with program(tmp_path) as (host, logins):
        telegram = host.add_channel("telegram")
        ben = Sender("8", "Ben")
        group = await say(telegram, "/login", sender=ben, private=False, role="member", chat="-100")
        assert "private chat" in group
        assert "Your code" not in group
        answer = await say(telegram, "/login", sender=ben, role="member")
        assert (await logins.log_in_with_code(code_in(answer))).visitor.role == "member"


async def test_who_is_logged_in_gets_a_code_for_another_browser(tmp_path):
    async with program(tmp_path) as (host, logins):
        web = host.add_channel("web")
        answer = await say(web, "/login", sender=Sender("telegram.42", "Ada"))
        opened = await logins.log_in_with_code(code_in(answer))
        assert opened.visitor.id == "telegram.42"
        people = host.services.scopes.identity_linker.people
        assert people.members("web:telegram.42") == ("telegram:42", "web:telegram.42")


async def test_nobody_gets_a_code_for_somebody_else_by_looking_at_their_chat(tmp_path):
    async with program(tmp_path) as (host, logins):
        telegram, web = host.add_channel("telegram"), host.add_channel("web")
        # Also where their id there is the one of somebody on this channel.
        for looks in (Sender("local", "Root"), Sender("8", "Root")):
            await telegram.send("/login", chat="8", sender=looks, via=Address("web", "local"))
        await host.wait_for_pending(0)
        assert not logins.login_store.fold.one_time_logins
        told = [one.text for one in (*telegram.answers, *web.answers)]
        assert not [text for text in told if "Your code" in text]
