"""Which session a client's conversation is: forks, repeated requests, several at once, questions of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from api_stage import FIRST, SECOND, program, talk

from bot.llm.base import ModelRequest
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply

TITLE = """### Task:
Generate a concise, 3-5 word title with an emoji summarizing the chat history.
### Output:
JSON format: { "title": "your concise title here" }
### Chat History:
<chat_history>
USER: I live in Oslo.
ASSISTANT: Nice.
</chat_history>"""
LIBRECHAT_TITLE = """Provide a concise, 5-word-or-less title for the conversation, using its same \
language, with no punctuation. Apply title case conventions appropriate for the language. Never \
directly mention the language name or the word "title" and only return the title itself.

Conversation:
User: I live in Oslo.
AI: Nice."""
PASSAGES = """### Task:
Respond to the user query using the provided context, incorporating inline citations.
### Output:
Provide a clear and direct response to the user's query.
<context>
<source id="1">The user lives in Paris.</source>
</context>

Where do I live?"""


def echo(request: ModelRequest) -> Any:
    """Answer with the number of messages in view, so that each answer shows what it saw."""
    said = [m for m in request.messages if m["role"] in ("user", "assistant")]
    return text_reply(f"answer {len(said)}")


async def test_an_edited_message_makes_a_fork_from_the_common_past(tmp_path: Path) -> None:
    async with program(tmp_path, ScriptedModel(echo)) as stage:
        assert await stage.ask("One") == "answer 1"
        assert await stage.ask("One", "answer 1", "Two") == "answer 3"
        assert await stage.ask("One", "answer 1", "Other") == "answer 3"
        assert await stage.sessions() == [FIRST, SECOND]
        assert await stage.said() == ["One", "answer 1", "Two", "answer 3"]
        assert await stage.said(SECOND) == ["One", "answer 1", "Other", "answer 3"]
        [fork] = await stage.anchors(SECOND)
        assert fork.data["parent"] == FIRST
        # Both go on, each with its own past.
        assert await stage.ask("One", "answer 1", "Two", "answer 3", "More") == "answer 5"
        assert await stage.ask("One", "answer 1", "Other", "answer 3", "More") == "answer 5"
        assert await stage.sessions() == [FIRST, SECOND]


async def test_a_regenerated_answer_is_a_fork_and_the_first_message_a_new_session(
    tmp_path: Path,
) -> None:
    async with program(tmp_path, ScriptedModel(echo)) as stage:
        for said in (["One"], ["One", "answer 1", "Two"], ["One", "answer 1", "Two"], ["One"]):
            await stage.ask(*said)
        assert await stage.said(SECOND) == ["One", "answer 1", "Two", "answer 3"]
        assert await stage.said("api:local:3") == ["One", "answer 1"]


async def test_a_conversation_from_elsewhere_is_quoted_and_goes_on(tmp_path: Path) -> None:
    model = ScriptedModel(echo)
    async with program(tmp_path, model) as stage:
        await stage.ask("My cat is Tom.", "Nice.", "Who is Tom?")
        assert await stage.said() == ["Who is Tom?", "answer 1"]
        assert "> user: My cat is Tom." in str(model.requests_for()[-1].messages[-1]["content"])


async def test_a_request_that_is_sent_again_is_answered_once(tmp_path: Path) -> None:
    step = PausedStep(text_reply("Hello."))
    async with program(tmp_path, ScriptedModel([step])) as stage:
        answers: list[str] = []

        async def ask() -> None:
            answers.append(await stage.ask("Hi"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await step.entered.wait()
            tasks.start_soon(ask)
            await stage.host.wait_until(lambda: stage.waiting == 2)
            step.release.set()
        assert answers == ["Hello.", "Hello."]
        assert await stage.said() == ["Hi", "Hello."]
        assert await stage.sessions() == [FIRST]


@pytest.mark.slow
async def test_an_answer_that_did_not_arrive_is_given_to_the_same_request(tmp_path: Path) -> None:
    step = PausedStep(text_reply("Hello."))
    async with program(tmp_path, ScriptedModel([step])) as stage:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.ask, "Hi")
            await step.entered.wait()
            tasks.cancel_scope.cancel()
        await stage.host.wait_until(lambda: stage.waiting == 0)
        step.release.set()
        [receipt] = await stage.host.wait_for_event("delivery", session=FIRST)
        assert receipt.data["delivered"] is False
        assert await stage.ask("Hi") == "Hello."
        assert await stage.said() == ["Hi", "Hello."]


@pytest.mark.parametrize("question", [TITLE, LIBRECHAT_TITLE])
async def test_a_clients_own_question_is_on_no_tape(tmp_path: Path, question: str) -> None:
    model = ScriptedModel(echo, summary=[text_reply('{"title": "Oslo"}')])
    async with program(tmp_path, model) as stage:
        await stage.ask("I live in Oslo.")
        assert await stage.ask(question, max_tokens=1000, stream=False) == '{"title": "Oslo"}'
        assert await stage.sessions() == [FIRST]
        assert await stage.said() == ["I live in Oslo.", "answer 1"]
        assert [m["content"] for m in model.requests_for("summary")[-1].messages] == [question]


async def test_passages_that_a_client_adds_are_quoted_and_no_words_of_the_user(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(echo)
    async with program(tmp_path, model) as stage:
        await stage.ask(PASSAGES)
        assert await stage.said() == ["Where do I live?", "answer 1"]
        assert "The user lives in Paris." in str(model.requests_for()[-1].messages[-1]["content"])
        # Later the client sends the words alone.
        await stage.ask("Where do I live?", "answer 1", "Thanks")
        assert await stage.sessions() == [FIRST]


async def test_what_open_webui_and_librechat_send_is_accepted(tmp_path: Path) -> None:
    async with program(tmp_path, ScriptedModel(echo)) as stage:
        listed = (await stage.http.get("/models")).json()
        assert listed["data"][0]["id"] == "tapebot"
        webui = {
            "stream": True,
            "model": "tapebot",
            "messages": talk("Hi"),
            "stream_options": {"include_usage": True},
        }
        headers = {"X-OpenWebUI-User-Name": "Ada", "X-OpenWebUI-Chat-Id": "4f7"}
        answer = await stage.http.post("/chat/completions", json=webui, headers=headers)
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.text.endswith("data: [DONE]\n\n")
        librechat = {
            "model": "tapebot",
            "user": "64f0",
            "stream": True,
            "messages": [
                {"role": "system", "content": "You are helpful."},
                {"role": "user", "content": [{"type": "text", "text": "Hi there"}]},
            ],
            "presence_penalty": 0,
            "top_p": 1,
        }
        answer = await stage.http.post("/chat/completions", json=librechat)
        assert "answer 1" in answer.text
        assert await stage.said(SECOND) == ["Hi there", "answer 1"]
