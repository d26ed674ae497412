"""The steps of ``tapebot setup``: what is asked. ``Setup`` says when, how an answer is checked, what is written."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.i18n import N_


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a step; its texts are before translation.

    Attributes:
        field: The setting.
        text: The question.
        about: What helps to answer it; empty for nothing.
        secret: Whether the answer is never shown.
    """

    field: str
    text: str
    about: str = ""
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step; its texts are before translation.

    Attributes:
        name: Its name on the command line.
        title: Its title.
        about: What it is for.
        questions: What is asked.
        waiting: What is said while the answers are checked; empty if at once.
        always: Whether what is set is checked, too, when no answer changes it.
    """

    name: str
    title: str
    about: str
    questions: tuple[Question, ...]
    waiting: str = ""
    always: bool = False


STEPS = (
    Step(
        "language",
        N_("Language"),
        N_("tapebot itself speaks this language: menus, commands, messages. You write in any."),
        (Question("language", N_("Language")),),
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
            Question("model", N_("Model, as provider/model")),
            Question(
                "model_api_base",
                N_("Address of its API; empty for the provider's own"),
                N_("For a server of your own, such as http://127.0.0.1:8000/v1"),
            ),
            Question("model_api_key", N_("Key for its API"), secret=True),
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
            ),
        ),
    ),
)
"""All steps, in order."""
