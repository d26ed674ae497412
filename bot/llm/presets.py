"""Model presets: which model a call goes to, by role, by a chat's choice, and by a need of privacy.

Rule 1: a call for a private problem goes to a private preset, or to none.
Rule 2: a chat's choice decides for its turns; for sub-tasks, too, unless that role has a preset.
Rule 3: a role without a preset uses the chat's first one, which is the configured default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bot.core.errors import ModelUnavailable
from bot.core.i18n import N_, _
from bot.llm.base import CapabilityProfile, Model, ModelReply, ModelRequest, OnText

ModelRole = Literal["chat", "consolidate", "judge", "task"]
"""What a chat model is used for."""

NO_PRIVATE_MODEL = N_(
    "this problem is private, and there is no private model: the owner can add a preset with "
    "private = true, or you switch to another problem with /problem"
)


class NoPrivateModel(ModelUnavailable):
    """A private problem needs a model, and no preset is private."""


class RefusingModel(Model):
    """Stands for the private model that there is not: every call fails, and nothing is sent."""

    @property
    def name(self) -> str:
        """A name for records."""
        return "none"

    @property
    def profile(self) -> CapabilityProfile:
        """Capabilities that ask for little."""
        return CapabilityProfile(can_judge=False)

    async def complete(
        self,
        request: ModelRequest,  # noqa: ARG002 - the protocol's
        on_text: OnText | None = None,  # noqa: ARG002 - the protocol's
    ) -> ModelReply:
        """Refuse.

        Raises:
            NoPrivateModel: Always.
        """
        raise NoPrivateModel(_(NO_PRIVATE_MODEL))

    async def aclose(self) -> None:
        """Do nothing: there are no resources to close."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A configured model.

    Attributes:
        name: Its name in the settings.
        model: The model, with its fallbacks and retries.
        private: Whether it and its fallbacks run on the owner's machine.
        owner_only: Whether only owners may choose it.
        context_tokens: Size of its context window.
    """

    name: str
    model: Model
    private: bool = False
    owner_only: bool = False
    context_tokens: int = 128_000


class ModelPresets:
    """The configured presets.

    Args:
        presets: At least one; the first is the default of chats.
        roles: Names of presets of other roles.

    Raises:
        ValueError: There is no preset, or a role names an unknown one.
    """

    def __init__(
        self, presets: Sequence[Preset], roles: Mapping[ModelRole, str] | None = None
    ) -> None:
        if not presets:
            raise ValueError("no presets")
        self._presets = {preset.name: preset for preset in presets}
        self._roles = dict(roles or {})
        if unknown := set(self._roles.values()) - set(self._presets):
            raise ValueError(f"unknown presets: {unknown}")

    def with_models(self, change: Callable[[Model], Model]) -> ModelPresets:
        """Return the same presets with changed models, such as counted ones."""
        presets = [replace(preset, model=change(preset.model)) for preset in self]
        return ModelPresets(presets, self._roles)

    def __iter__(self) -> Iterator[Preset]:
        """Iterate over the presets, the default first."""
        return iter(self._presets.values())

    @property
    def default(self) -> Preset:
        """The preset of chats that chose none."""
        return next(iter(self))

    def get(self, name: str) -> Preset | None:
        """Return a preset by name; None if there is none."""
        return self._presets.get(name)

    def named_for(self, role: ModelRole) -> Preset | None:
        """Return the preset that the settings name for a role; None without one."""
        return self._presets.get(self._roles.get(role, ""))

    def select(self, role: ModelRole, *, chosen: str = "", private: bool = False) -> Preset:
        """Return the preset for a call.

        Args:
            role: What the call is for.
            chosen: Name of the preset that the chat chose; empty or unknown for none.
            private: Whether only a private preset will do.

        Raises:
            NoPrivateModel: There is no private preset.
        """
        own = chosen if role in ("chat", "task") else ""
        wanted: list[Preset | None] = [self.named_for(role), self.get(own), *self]
        for preset in wanted:
            if preset is not None and (preset.private or not private):
                return preset
        raise NoPrivateModel(_(NO_PRIVATE_MODEL))
