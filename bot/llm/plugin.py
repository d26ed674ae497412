"""Call the model of a plug-in; its failures end a call, and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from bot.core.errors import ModelRejected, ModelUnavailable, PluginUnavailable, TapebotError
from bot.core.plugins import Plugin, raised
from bot.core.reasons import Reason, reason_of
from bot.llm.base import CapabilityProfile, Model, ModelReply, ModelRequest, OnText
from bot.llm.openai_format import own_messages

logger = logging.getLogger(__name__)


class PluginModel(Model):
    """A plug-in's model; one that cannot be created refuses every call, so that others go on."""

    def __init__(self, name: str, plugin: Plugin, create: Callable[[Plugin], Model]) -> None:
        self._name = name
        self._plugin = plugin
        self._profile = CapabilityProfile(can_judge=False)
        self._model: Model | None = None
        self._problem = ""
        try:
            self._model = create(plugin)
            self._profile = self._model.profile
            if not isinstance(self._profile, CapabilityProfile):
                raise plugin.unavailable(Reason("plugin_no_profile"))  # noqa: TRY301 (told like others)
        except PluginUnavailable as error:
            self._problem = reason_of(error)
        except TapebotError as error:
            self._problem = Reason("plugin_said", plugin=plugin.label, error=reason_of(error))
        except Exception as error:
            # Isolates the program from code that it does not know.
            logger.exception("%s cannot be created", plugin)
            self._problem = reason_of(plugin.unavailable(raised("plugin_fails", error)))
        if self._problem:
            self._model = None
            logger.warning("%s", self._problem)

    @property
    def name(self) -> str:
        """The name in the settings."""
        return self._name

    @property
    def profile(self) -> CapabilityProfile:
        """The model's capabilities; few if it could not be created."""
        return self._profile

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Call the model.

        Raises:
            ModelUnavailable: It could not be created.
            ModelRejected: It failed in a way that it should not, or replied with something else.
        """
        if self._model is None:
            raise ModelUnavailable(self._problem)
        try:
            messages = own_messages(request.messages, self._name)
            reply = await self._model.complete(replace(request, messages=messages), on_text)
        except TapebotError:
            raise
        except Exception as error:
            # Isolates the session from code that the program does not know.
            logger.exception("%s failed", self._plugin)
            raise ModelRejected(self._plugin.failed(error)) from error
        if not isinstance(reply, ModelReply):
            raise ModelRejected(Reason("plugin_no_reply", plugin=self._plugin.label))
        return replace(reply, origin=self._name)

    async def aclose(self) -> None:
        """Close the model."""
        if self._model is None:
            return
        try:
            await self._model.aclose()
        except Exception:
            # The program closes other things after it.
            logger.exception("%s cannot be closed", self._plugin)
