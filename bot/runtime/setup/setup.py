"""What is set, what a new answer would mean, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import anyio.to_thread

from bot.core.errors import SettingsError
from bot.core.i18n import LANGUAGES, _
from bot.core.telemetry.redaction import Redactor
from bot.runtime.models import provider_of as provider_name
from bot.runtime.settings import PREFIX, Settings, export_dotenv, load_settings
from bot.runtime.setup.checks import (
    Outcome,
    check_backup,
    check_discord,
    check_model,
    check_site,
    check_telegram,
)
from bot.runtime.setup.config_files import ConfigFiles, Written, read_variable
from bot.runtime.setup.providers import PROVIDERS, local_models, needs_key, provider_of
from bot.runtime.setup.steps import Question, Step

Answers = Mapping[str, str | None]
"""New values by setting; None removes what is set. What is not changed is not in it."""

REMOVE = "-"
"""The answer that removes what is set."""

_LONGEST = 4_096
_KEY, _BASE = "model_api_key", "model_api_base"
_CHECKS = {
    "telegram": check_telegram,
    "discord": check_discord,
    "web": check_site,
    "backup": check_backup,
}


class Setup:
    """The state of a setup.

    Attributes:
        settings: The settings as they are; read anew after each step that is saved.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._files = ConfigFiles(settings)
        self._local_models: list[str] = []

    async def look_around(self) -> None:
        """Find models on this machine."""
        self._local_models = await anyio.to_thread.run_sync(local_models)

    def choices(self, question: Question) -> Mapping[str, str]:
        """Return the proposed answers, and what each is for people; translated."""
        if question.field == "language":
            return LANGUAGES
        if question.field != "model":
            return {}
        have_key, others = {}, {}
        for one in PROVIDERS.values():
            if self._has_variable(one.variable):
                name = one.variable
                have_key[one.model] = _(
                    "{provider}; {variable} is set", provider=one.title, variable=name
                )
            else:
                others[one.model] = one.title
        here = dict.fromkeys(self._local_models, _("Ollama, on this machine"))
        none = _("no language model: a notebook answers, nothing leaves this machine")
        return {**have_key, **here, **others, "offline": none}

    def asks(self, question: Question, answers: Answers) -> bool:
        """Return whether a question is asked after these answers to those before it."""
        settings = self.settings
        if question.field == _BASE:
            # A model that is not one of the proposed ones may be on a server of one's own.
            model = answers.get("model") or ""
            name, slash, _rest = model.partition("/")
            proposed = model in {one.model for one in PROVIDERS.values()} | {*self._local_models}
            return bool(slash) and ":" not in name and not proposed
        if question.field == _KEY:
            return needs_key(answers.get("model", settings.model) or "offline")
        if question.field == "backup_passphrase":
            folder = answers.get("backup_to", str(settings.backup_to or ""))
            return bool(folder) and not settings.backup_recipients
        return True

    def shown(self, question: Question, answers: Answers) -> str:
        """Return what counts for a question if it is not answered; of a secret, whether it is set."""
        field = question.field
        if question.secret:
            return _("set") if answers.get(field) or self._is_set(question, answers) else ""
        if field in answers:
            return answers[field] or ""
        if field == _BASE and "model" in answers:
            return ""
        return self.settings.shown_language if field == "language" else self._value(field)

    def status(self, step: Step) -> str:
        """Return what is set of a step, in a few words."""
        settings = self.settings
        match step.name:
            case "language":
                return LANGUAGES[settings.shown_language]
            case "timezone":
                return settings.timezone
            case "model":
                return settings.roles.chat or settings.model or _("offline")
            case "web":
                return settings.web_base or _("off")
            case "backup":
                return str(settings.backup_to) if settings.backup_to else _("off")
        return _("set") if self._is_set(step.questions[0], {}) else _("off")

    def parse(self, question: Question, text: str) -> str | None:
        """Return the value of a typed answer; None removes what is set.

        Raises:
            SettingsError: The setting cannot have this value; the text says what it can.
        """
        text = text.strip()
        if text == REMOVE or not text:
            return None
        if len(text) > _LONGEST or not text.isprintable():
            raise SettingsError(_("Give one line of printable text."))
        self._candidate({question.field: text})
        return text

    def changes(self, step: Step, answers: Answers) -> Answers:
        """Return the answers, if one of them differs from what is set; else none."""
        known = self.settings.model_fields_set  # a default may be set, too
        stored = {field: self._value(field) if field in known else "" for field in answers}
        secret = {question.field for question in step.questions if question.secret}
        differs = any(
            field in secret or (value or "") != stored[field] for field, value in answers.items()
        )
        return answers if differs else {}

    async def check(self, step: Step, answers: Answers) -> Outcome:
        """Try answers against what they are for; nothing is written.

        Raises:
            SettingsError: They do not fit each other.
        """
        candidate = self._candidate(self._fields(step, answers))
        if step.name == "model":
            outcome = await check_model(candidate, self._key(candidate, answers))
        elif step.name in _CHECKS:
            outcome = await _CHECKS[step.name](candidate)
        else:
            # It will be the new value that is shown.
            return Outcome(True, "")
        redact = Redactor([*candidate.secrets(), *self._typed(step, answers)])
        return replace(outcome, text=redact(outcome.text), remedy=redact(outcome.remedy))

    def save(self, step: Step, answers: Answers) -> Written:
        """Write answers, and read the settings anew.

        Raises:
            SettingsError: The files cannot be read.
            OSError: They cannot be written.
        """
        fields = self._fields(step, answers)
        values = {f"{PREFIX}{field.upper()}": value for field, value in fields.items()}
        if _KEY in answers:
            values[f"{PREFIX}{_KEY.upper()}"] = None
            values[self._key_variable(answers)] = answers[_KEY]
        comments = {
            f"{PREFIX}{name.upper()}": field.description or ""
            for name, field in Settings.model_fields.items()
        } | {
            one.variable: _("Key for {provider}.", provider=one.title) for one in PROVIDERS.values()
        }
        secret = bool(self._typed(step, answers))
        written = self._files.write(values, comments, secret=secret)
        export_dotenv()
        self.settings = load_settings(home=self.settings.home)
        return written

    def fits_provider(self, answers: Answers, earlier: Answers) -> bool:
        """Return whether address and key of earlier answers are for the model of these."""
        before, after = earlier.get("model") or "", answers.get("model") or ""
        return provider_name(before) == provider_name(after)

    def _value(self, field: str) -> str:
        value = getattr(self.settings, field)
        if field == "web_listen" and value is None:
            return "off"
        return "" if value is None else str(value)

    def _has_variable(self, name: str) -> bool:
        return read_variable(self.settings, name) is not None

    def _is_set(self, question: Question, answers: Answers) -> bool:
        """Return whether a secret is set that would be used after these answers."""
        if question.field != _KEY:
            return bool(getattr(self.settings, question.field))
        own = self.settings.model_api_key is not None and self._keeps_key(answers)
        return own or self._has_variable(self._key_variable(answers))

    def _key(self, candidate: Settings, answers: Answers) -> str | None:
        """Return the key that the model would be called with; None for its own variable or none."""
        if _KEY in answers:
            return answers[_KEY]
        own = self.settings.model_api_key
        if own is not None and self._keeps_key(answers):
            return own.get_secret_value()
        if needs_key(candidate.model or "offline") and candidate.model_api_base is None:
            return read_variable(self.settings, self._key_variable(answers))
        return None

    def _candidate(self, values: Answers) -> Settings:
        """Return the settings as they would be."""
        given = {field: value or "" for field, value in values.items()}
        return load_settings(home=self.settings.home, **given)

    def _fields(self, step: Step, answers: Answers) -> dict[str, str | None]:
        """Return the settings that a step changes, with what goes with them."""
        found = dict(answers)
        if step.name == "model" and "model" in answers:
            # An address and a key belong to the model that they were given for.
            found.setdefault(_BASE, None)
            if not self._keeps_key(answers):
                found.setdefault(_KEY, None)
        return found

    def _key_variable(self, answers: Answers) -> str:
        """Return the variable of the key: the provider's own, which its other models share."""
        kept = None if "model" in answers else self.settings.model_api_base
        provider = provider_of(answers.get("model") or self.settings.model or "offline")
        if provider is None or answers.get(_BASE, kept):
            return f"{PREFIX}{_KEY.upper()}"
        return provider.variable

    def _keeps_key(self, answers: Answers) -> bool:
        """Return whether the key that is set fits the model after these answers."""
        if "model" not in answers:
            return True
        before, after = self.settings.model or "offline", answers["model"] or "offline"
        same_address = (answers.get(_BASE) or None) == self.settings.model_api_base
        return provider_name(before) == provider_name(after) and same_address

    def _typed(self, step: Step, answers: Answers) -> Sequence[str]:
        """Return the secrets among answers."""
        secret = {question.field for question in step.questions if question.secret}
        return [value for field, value in answers.items() if field in secret and value]
