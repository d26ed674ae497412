"""A client's instructions and tools are on the tape once, and every request can be reconstructed."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from api_stage import FIRST, Stage, program, talk

from bot.agent.request_reconstruction import reconstruct_request
from bot.agent.turn_history import past_turn
from bot.tape.service import TapeService
from bot.testing.scripted_model import ScriptedModel, text_reply

SYSTEM = "Speak like a pirate. " * 500
TOOL = {"type": "function", "function": {"name": "look", "description": "Looks at the sea."}}


async def ask(stage: Stage, system: str, *said: str) -> str:
    messages = [{"role": "system", "content": system}, *talk(*said)]
    reply = await stage.client.chat.completions.create(
        model="tapebot", messages=messages, tools=[TOOL]
    )
    return reply.choices[0].message.content


def replying() -> ScriptedModel:
    return ScriptedModel(lambda request: text_reply(f"Answer {len(request.messages)}."))


async def test_instructions_are_recorded_once_while_they_do_not_change(tmp_path):
    said: list[str] = []
    sent = []
    for system in (SYSTEM, SYSTEM, SYSTEM, "Be kind.", SYSTEM):
        model = replying()
        async with program(tmp_path, model) as stage:
            said.append(f"Word {len(said)}.")
            said.append(await ask(stage, system, *said))
            sent.append(model.requests_for()[-1])
            assert system.strip() in str(sent[-1].messages[-1]["content"])
            assert "look" in [tool.name for tool in sent[-1].tools]
    async with program(tmp_path, replying()) as stage:
        tape = await stage.host.tape(FIRST)
        recorded = [one for one in tape if one.name == "client.instructions"]
        assert [one.data["system"] for one in recorded] == [SYSTEM, "Be kind.", SYSTEM]
        assert sum("pirate" in str(one) for one in tape) == 2
        ends = [one for one in tape if one.name == "turn.end"]
        service = TapeService(stage.host.store, FIRST)
        for end, request in zip(ends[-len(sent) :], sent, strict=True):
            turn = await past_turn(service, end.data["turn"])
            found = await reconstruct_request(service, turn, turn.calls[-1], ZoneInfo("UTC"))
            assert found.messages() == request.messages
