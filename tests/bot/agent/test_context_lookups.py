"""What a look-up found is in the prompt until its answer, and on the tape for good."""

from __future__ import annotations

import pytest

from bot.tape.entries import SESSION_NEW, anchor
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

_LOOK_UP = ("memory_recall", {"query": "cello"})
_ASIDE = ("memory_recall", {"query": "cello", "aside": False})
_SHOW = ("memory_show", {})
_PAST = "look it up again"


def _results(model: ScriptedModel) -> list[str]:
    messages = model.requests_for()[-1].messages
    return [str(one["content"]) for one in messages if one["role"] == "tool"]


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        ([[_LOOK_UP]], [False]),
        ([[_LOOK_UP, _LOOK_UP]], [False, False]),
        ([[_SHOW], [_LOOK_UP], [_LOOK_UP]], [True, False, False]),
        ([[_LOOK_UP], [_SHOW]], [True, True]),
        ([[_LOOK_UP, _SHOW]], [True, True]),
        ([[_ASIDE]], [True]),
    ],
    ids=["alone", "two at once", "one after another", "before another tool", "beside another",
         "what a sub-task may have found"],
)  # fmt: skip
async def test_a_look_up_leaves_the_prompt_only_where_no_cached_text_follows_it(
    tmp_path, steps, shown
):
    """Whatever stands behind it would be read anew, at the full price."""
    planned = [text_reply("ok"), *(tool_call_reply(*calls) for calls in steps)]
    model = ScriptedModel(lambda _: planned.pop(0) if planned else text_reply("ok"))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(f"My sister Beatrix plays the cello{', day after day' * 9}.")
        await host.store.append("fake:1", anchor(SESSION_NEW, {"owner": "human"}))
        await host.channel.ask("Look up what she plays.")
        found = _results(model)
        assert not any(_PAST in one for one in found), "shown as long as the turn runs"
        await host.channel.ask("Thanks.")
        assert [_PAST not in one for one in _results(model)] == shown
        results = [e for e in await host.tape() if e.kind == "tool_result"]
        assert [e.payload["content"] for e in results] == found
