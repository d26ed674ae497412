"""What sessions learn: whose it is, from which words, and once."""

from __future__ import annotations

from bot.core.clock import format_time
from bot.memory.records.fact import Evidence
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.service import TapeService
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply


async def believed(host: Host, session: str = "fake:1") -> list[str]:
    scope = ScopeMemory(TapeService(host.store, session), "person", host.clock)
    await scope.open()
    return [fact.text for fact in scope.active()]


async def import_onto(host: Host, *lines: str, session: str = "fake:1") -> None:
    """Put facts on a session's own tape, as an import does that cannot know whose it is."""
    scope = ScopeMemory(TapeService(host.store, session), "session", host.clock)
    await scope.tape.ensure_bootstrap_anchor()
    evidence = Evidence(session, 1, "", "memory", format_time(host.clock.now()), "import")
    proposals = tuple(Proposal("add", line, evidence=(evidence,)) for line in lines)
    await scope.apply(ProposalBatch("import:x", "import", proposals))


async def test_what_an_import_put_on_a_direct_chat_becomes_the_persons_once(tmp_path):
    async with session_host(tmp_path, ScriptedModel([text_reply("ok")] * 4)) as host:
        await host.channel.ask("/memory add I like tea", chat="2")
        await import_onto(host, "The boat is called Nora.", "The cellar is damp.")
        await host.channel.ask("hello")
        assert await believed(host, "person:fake:7") == [
            "I like tea",
            "The boat is called Nora.",
            "The cellar is damp.",
        ]
        assert await believed(host, "fake:1") == []
        assert "Nora" in await host.channel.ask("/memory", chat="2")
        await host.channel.ask("/memory clear yes")
    async with session_host(tmp_path, ScriptedModel([text_reply("ok")])) as host:
        await host.channel.ask("hello again")
        assert await believed(host, "person:fake:7") == []
