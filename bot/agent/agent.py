"""The model, tools and limits that every turn uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import tzinfo

from bot.agent.approvals import Approvals
from bot.agent.consolidation.judge_trial import JudgeTrial, JudgeTrials
from bot.agent.context import ContextBuilder
from bot.agent.files.service import FileService
from bot.agent.skills.skill_library import SkillLibrary
from bot.agent.spending.spending import Spending
from bot.agent.tools.registry import ToolRegistry
from bot.agent.views.registry import DEFAULT_BUILDER
from bot.agent.workspace_files import WorkspaceFiles
from bot.core.clock import Clock
from bot.core.i18n import _
from bot.llm.base import Model
from bot.llm.presets import NO_PRIVATE_MODEL, ModelPresets, NoPrivateModel, RefusingModel
from bot.memory.session.state.fact_markdown import facts_room
from bot.memory.session.vector_index import VectorIndex

ImageLoader = Callable[[str], Awaitable[bytes | None]]
"""Load an image by its blob store name; return None if it does not exist."""


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent: a model, its tools, and its limits.

    Attributes:
        model: The model that answers.
        tools: The tools that the model may call.
        workspace: Source of bootstrap files.
        skills: The skills to read.
        clock: Clock for timestamps and durations.
        timezone: The user's time zone.
        timezone_name: Name of the time zone, as shown in the prompt.
        max_steps: Maximum number of model calls in a turn.
        context_tokens: Size of the model's context window, in tokens.
        builder: Context builder that renders a session's entries.
        images: Loader of images; None if there is no blob store.
        recall_tokens: Token budget of automatic recall in a turn; 0 turns it off.
        facts_tokens: Tokens of facts in a prompt; None for a share of the window.
        vectors: Index for semantic search; None searches by words alone.
        judge: Model that says whether quotes support a memory; without one they stay quotations.
        judge_trials: Results of judges with claims whose rulings are known; None trusts every judge.
        approvals: Numbers the calls that wait for a person's yes; without it no tool may act.
        spending: Counts what models cost; None if nothing is counted.
        presets: The models that chats may choose; None if there is only ``model``.
        preset: Name of the preset whose model this is; empty for the default.
        private: Whether nothing that this agent reads may leave the machine.
        files: The folders of files; None if there are none.
    """

    model: Model
    tools: ToolRegistry
    workspace: WorkspaceFiles
    skills: SkillLibrary
    clock: Clock
    timezone: tzinfo
    timezone_name: str
    max_steps: int
    context_tokens: int
    builder: ContextBuilder = DEFAULT_BUILDER
    images: ImageLoader | None = None
    recall_tokens: int = 400
    facts_tokens: int | None = None
    vectors: VectorIndex | None = None
    judge: Model | None = None
    judge_trials: JudgeTrials | None = None
    approvals: Approvals | None = None
    spending: Spending | None = None
    presets: ModelPresets | None = None
    preset: str = ""
    private: bool = False
    files: FileService | None = None

    def for_chat(self, chosen: str, *, private: bool) -> Agent:
        """Return the agent that runs a chat's turns.

        Args:
            chosen: Name of the preset that the chat chose; empty for none.
            private: Whether the active problem demands a private model. If there is none, the
                agent's model refuses every call.
        """
        try:
            agent = self._chosen(chosen, private=private)
        except NoPrivateModel:
            return replace(self, model=RefusingModel(), judge=None, private=True)
        # What a server has named as the most is the window, whatever is configured.
        window = agent.model.profile.most_tokens or agent.context_tokens
        if window < agent.context_tokens:
            agent = replace(agent, context_tokens=window)
        return replace(agent, private=True, judge=self._private_judge()) if private else agent

    def failed_trial(self, judge: Model) -> JudgeTrial | None:
        """Return the trial that a judge failed, so that it counts as none; None if it failed none."""
        trial = self.judge_trials.result(judge) if self.judge_trials is not None else None
        return trial if trial is not None and not trial.passed else None

    @property
    def has_judge(self) -> bool:
        """Whether a judge that passed its trial rules on what is saved."""
        if self.judge is None or self.judge_trials is None:
            return self.judge is not None
        trial = self.judge_trials.result(self.judge)
        return trial is not None and trial.passed

    @property
    def facts_room(self) -> int:
        """Tokens of facts in a prompt."""
        return self.facts_tokens or facts_room(self.context_tokens)

    @property
    def searchable_vectors(self) -> VectorIndex | None:
        """The index for semantic search, if what this agent reads may be sent to the embedding model."""
        index = self.vectors
        return None if index is None or (self.private and not index.private) else index

    @property
    def consolidation_model(self) -> Model:
        """The model that consolidates what was said outside of private problems."""
        named = self.presets.named_for("consolidate") if self.presets is not None else None
        return named.model if named is not None else self.model

    @property
    def private_consolidation_model(self) -> Model | None:
        """The model that sums up private problems; None without a private one."""
        if self.presets is None:
            return None
        try:
            return self.presets.select("consolidate", private=True).model
        except NoPrivateModel:
            return None

    @property
    def consolidation_tokens(self) -> int:
        """Size of the window of the model that consolidates."""
        named = self.presets.named_for("consolidate") if self.presets is not None else None
        return named.context_tokens if named is not None else self.context_tokens

    @property
    def task_model(self) -> Model:
        """The model that runs sub-tasks."""
        named = self.presets.named_for("task") if self.presets is not None else None
        if named is None or (self.private and not named.private):
            return self.model
        return named.model

    def _chosen(self, chosen: str, *, private: bool) -> Agent:
        if self.presets is None:
            if private:
                raise NoPrivateModel(_(NO_PRIVATE_MODEL))
            return self
        preset = self.presets.select("chat", chosen=chosen, private=private)
        if preset.name == self.presets.default.name:
            return self
        return replace(
            self, model=preset.model, context_tokens=preset.context_tokens, preset=preset.name
        )

    def _private_judge(self) -> Model | None:
        assert self.presets is not None
        judge = self.presets.select("judge", private=True).model
        return judge if judge.profile.can_judge else None
