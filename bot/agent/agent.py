"""The model, tools and limits that every turn uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import tzinfo

from bot.agent.approvals import Approvals
from bot.agent.context import ContextBuilder
from bot.agent.spending.spending import Spending
from bot.agent.tools.registry import ToolRegistry
from bot.agent.views.registry import DEFAULT_BUILDER
from bot.agent.workspace_files import WorkspaceFiles
from bot.core.clock import Clock
from bot.llm.base import Model
from bot.memory.session.vector_index import VectorIndex

ImageLoader = Callable[[str], Awaitable[bytes | None]]
"""Load an image by its blob store name; return None if it does not exist."""


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent: a model, its tools, and its limits.

    Attributes:
        model: The model that answers.
        tools: The tools that the model may call.
        workspace: Source of bootstrap files and skills.
        clock: Clock for timestamps and durations.
        timezone: The user's time zone.
        timezone_name: Name of the time zone, as shown in the prompt.
        max_steps: Maximum number of model calls in a turn.
        context_tokens: Size of the model's context window, in tokens.
        builder: Context builder that renders a session's entries.
        images: Loader of images; None if there is no blob store.
        recall_tokens: Token budget of automatic recall in a turn; 0 turns it off.
        vectors: Index for semantic search; None searches by words alone.
        judge: Model that checks whether quotes support a memory; None leaves that to rules.
        approvals: Numbers the calls that wait for a person's yes; without it no tool may act.
        spending: Counts what models cost; None if nothing is counted.
    """

    model: Model
    tools: ToolRegistry
    workspace: WorkspaceFiles
    clock: Clock
    timezone: tzinfo
    timezone_name: str
    max_steps: int
    context_tokens: int
    builder: ContextBuilder = DEFAULT_BUILDER
    images: ImageLoader | None = None
    recall_tokens: int = 400
    vectors: VectorIndex | None = None
    judge: Model | None = None
    approvals: Approvals | None = None
    spending: Spending | None = None
