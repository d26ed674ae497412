"""How much of each prompt repeats the one before byte for byte, so that a cache may serve it."""

from __future__ import annotations

import json

from bench.models import RememberingModel
from bench.program import program
from bench.report import Scale, Table
from bot.llm.base import estimate_tokens
from bot.llm.openai_format import tools_json

_WINDOW = 100


def shared_tokens(before: str, prompt: str) -> int:
    """Return the tokens at a prompt's beginning that the one before began with as well."""
    pairs = enumerate(zip(before, prompt, strict=False))
    length = next((at for at, (one, other) in pairs if one != other), min(len(before), len(prompt)))
    return estimate_tokens(prompt[:length])


def _fixed_tokens(model: RememberingModel) -> int:
    system = json.loads(model.heads[0])[0]["content"]
    tools = tools_json(model.last.tools) if model.last is not None else []
    return estimate_tokens(system) + estimate_tokens(json.dumps(tools))


async def measure(scale: Scale) -> list[Table]:
    """Hold one conversation and compare its prompts."""
    turns = scale.pick(200, 60)
    model = RememberingModel()
    async with program(
        scale.work, model, memory_window=_WINDOW if not scale.quick else 20
    ) as running:
        for _ in range(turns):
            await running.turn("prefix")
    found = [
        (
            shared_tokens(before, prompt),
            estimate_tokens(prompt),
            model.heads[at] == model.heads[at + 1],
        )
        for at, (before, prompt) in enumerate(zip(model.prompts, model.prompts[1:], strict=False))
    ]
    kept = [(shared, whole) for shared, whole, same in found if same]
    every = [(shared, whole) for shared, whole, _ in found]
    rows = [
        (
            name,
            len(pairs),
            100 * sum(shared for shared, _ in pairs) / sum(whole for _, whole in pairs),
            100 * min(shared / whole for shared, whole in pairs),
            sum(whole for _, whole in pairs) // len(pairs),
        )
        for name, pairs in (("all", every), ("where the view was not cut anew", kept))
    ]
    return [
        Table(
            f"Share of each prompt that repeats the one before, {turns} turns",
            ("prompts", "count", "% of tokens", "least %", "tokens each"),
            rows,
            [
                f"{model.consolidations} consolidations; memory was saved in every twelfth turn; "
                "tokens are estimated",
                f"fixed: {_fixed_tokens(model)} tokens of system prompt and tools in a new session",
            ],
        )
    ]
