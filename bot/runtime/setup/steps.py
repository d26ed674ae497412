"""The steps of ``tapebot setup``: what is asked. Both the terminal and the site go through them.

``Setup`` says how an answer is checked, and what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.core.i18n import LANGUAGES, N_, _
from bot.runtime.settings import Settings
from bot.runtime.setup.providers import PROVIDERS, needs_key

Answers = Mapping[str, str | None]
"""New values by setting; None removes what is set. What is not changed is not in it."""


class Known(Protocol):
    """What is known when a question is asked.

    Attributes:
        settings: The settings as they are.
        local_models: Models that run on this machine.
    """

    settings: Settings
    local_models: list[str]

    def has_variable(self, name: str) -> bool:
        """Return whether a variable is set."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the proposed answers.

    Attributes:
        value: The value of the setting.
        label: What it is, for people; translated.
    """

    value: str
    label: str


def _no_choices(setup: Known) -> Sequence[Choice]:  # noqa: ARG001 (the signature)
    return ()


def _always(setup: Known, answers: Answers) -> bool:  # noqa: ARG001 (the signature)
    return True


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a step.

    Attributes:
        field: The setting.
        text: The question, before translation.
        about: What helps to answer it, before translation; empty for nothing.
        secret: Whether the answer is never shown.
        closed: Whether only a proposed answer is possible.
        choices: Returns the proposed answers.
        asked: Whether it is asked after these answers to the questions before it.
    """

    field: str
    text: str
    about: str = ""
    secret: bool = False
    closed: bool = False
    choices: Callable[[Known], Sequence[Choice]] = _no_choices
    asked: Callable[[Known, Answers], bool] = _always


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        name: Its name, on the command line and in addresses.
        title: Its title, before translation.
        about: What it is for, before translation.
        questions: What is asked.
        waiting: What is said while the answers are checked, before translation; empty if at once.
        always: Whether what is set is checked, too, when no answer changes it.
    """

    name: str
    title: str
    about: str
    questions: tuple[Question, ...]
    waiting: str = ""
    always: bool = False


def _languages(setup: Known) -> Sequence[Choice]:  # noqa: ARG001 (the signature)
    return [Choice(code, name) for code, name in LANGUAGES.items()]


def _models(setup: Known) -> Sequence[Choice]:
    """Return models: those on this machine, of providers whose key is there, and the others."""
    here = [Choice(model, _("Ollama, on this machine")) for model in setup.local_models]
    have_key, others = [], []
    for provider in PROVIDERS.values():
        if setup.has_variable(provider.variable):
            label = _(
                "{provider}; {variable} is set",
                provider=provider.title,
                variable=provider.variable,
            )
            have_key.append(Choice(provider.model, label))
        else:
            others.append(Choice(provider.model, provider.title))
    none = Choice(
        "offline", _("no language model: a notebook answers, nothing leaves this machine")
    )
    return [*have_key, *here, *others, none]


def _asks_address(setup: Known, answers: Answers) -> bool:
    """Return whether a model was typed that is not one of the proposed ones."""
    model = answers.get("model")
    proposed = {choice.value for choice in _models(setup)}
    return model is not None and model not in proposed and needs_address(model)


def needs_address(model: str) -> bool:
    """Return whether a model may be at an address of one's own."""
    name, slash, _rest = model.partition("/")
    return bool(slash) and ":" not in name


def _asks_key(setup: Known, answers: Answers) -> bool:
    model = answers.get("model", setup.settings.model)
    return needs_key(model or "offline")


def _asks_passphrase(setup: Known, answers: Answers) -> bool:
    folder = answers.get("backup_to", str(setup.settings.backup_to or ""))
    return bool(folder) and not setup.settings.backup_recipients


STEPS = (
    Step(
        "language",
        N_("Language"),
        N_("tapebot itself speaks this language: menus, commands, messages. You write in any."),
        (Question("language", N_("Language"), closed=True, choices=_languages),),
    ),
    Step(
        "timezone",
        N_("Time zone"),
        N_("Reminders and shown times use it."),
        (Question("timezone", N_("Time zone, such as Europe/Berlin")),),
    ),
    Step(
        "model",
        N_("Language model"),
        N_("It answers you, and what you write is sent to it. It is called twice to test it."),
        (
            Question("model", N_("Model, as provider/model"), choices=_models),
            Question(
                "model_api_base",
                N_("Address of its API; empty for the provider's own"),
                N_("For a server of your own, such as http://127.0.0.1:8000/v1"),
                asked=_asks_address,
            ),
            Question("model_api_key", N_("Key for its API"), secret=True, asked=_asks_key),
        ),
        N_("Calling the model …"),
    ),
    Step(
        "telegram",
        N_("Telegram"),
        N_("Send /newbot to https://t.me/BotFather. It gives you a token."),
        (Question("telegram_token", N_("Token of the bot"), secret=True),),
        N_("Asking Telegram …"),
    ),
    Step(
        "discord",
        N_("Discord"),
        N_(
            "Create an application at https://discord.com/developers/applications. Under Bot, turn "
            "on Message Content Intent, press Reset Token, and copy the token."
        ),
        (Question("discord_token", N_("Token of the bot"), secret=True),),
        N_("Asking Discord …"),
    ),
    Step(
        "web",
        N_("Site"),
        N_("The chat and the inspector in your browser."),
        (
            Question(
                "web_listen",
                N_("Where the site listens on this machine, or off"),
                N_("127.0.0.1:8020 is reached from this machine alone."),
            ),
            Question(
                "web_url",
                N_("Its public address, if a proxy with HTTPS is in front of it"),
                N_("Such as https://bot.example.org; empty for none."),
            ),
        ),
        always=True,
    ),
    Step(
        "backup",
        N_("Backups"),
        N_("An encrypted copy of everything each night, on another disk or a synchronised folder."),
        (
            Question("backup_to", N_("Folder of the backups")),
            Question(
                "backup_passphrase",
                N_("Passphrase, at least 10 characters"),
                N_("Without it nobody can open a backup. Write it down elsewhere."),
                secret=True,
                asked=_asks_passphrase,
            ),
        ),
    ),
)
"""All steps, in order."""
