"""What is set, what a new answer would mean, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping
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
from bot.runtime.setup.steps import Answers, Question, Step

REMOVE = "-"
"""The answer that removes what is set."""

_LONGEST = 4_096
_KEY = "model_api_key"
_CHECKS = {
    "telegram": check_telegram,
    "discord": check_discord,
    "backup": check_backup,
}


class Setup:
    """The state of a setup.

    Args:
        settings: The settings as they are now.
        with_link: Whether the person is at this machine, and may get a link that logs them in.

    Attributes:
        settings: The same; read anew after each step that is saved.
        files: Where they are written.
        local_models: Models that run on this machine, once ``look_around`` has run.
    """

    def __init__(self, settings: Settings, *, with_link: bool = False) -> None:
        self.settings = settings
        self._with_link = with_link
        self.files = ConfigFiles(settings)
        self.local_models: list[str] = []

    async def look_around(self) -> None:
        """Find models on this machine."""
        self.local_models = await anyio.to_thread.run_sync(local_models)

    def has_variable(self, name: str) -> bool:
        """Return whether a provider's key is set."""
        return read_variable(self.settings, name) is not None

    def is_set(self, question: Question, answers: Answers) -> bool:
        """Return whether a secret is set that would be used after these answers."""
        if question.field != _KEY:
            return bool(getattr(self.settings, question.field))
        own = self.settings.model_api_key is not None and self._keeps_key(answers)
        return own or self.has_variable(self._key_variable(answers))

    def value(self, question: Question) -> str:
        """Return what is set, or what counts without it; never a secret."""
        if question.secret:
            return ""
        value = getattr(self.settings, question.field)
        if question.field == "language":
            return self.settings.shown_language
        if question.field == "web_listen" and value is None:
            return "off"
        return "" if value is None else str(value)

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
        return _("set") if self.is_set(step.questions[0], {}) else _("off")

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

    def changes(self, step: Step, answers: Answers) -> dict[str, str | None]:
        """Return the answers, if one of them differs from what is set; else none."""
        secret = {question.field for question in step.questions if question.secret}
        differs = any(
            field in secret or (value or "") != self._stored(field)
            for field, value in answers.items()
        )
        return dict(answers) if differs else {}

    def without_old_address(self, answers: dict[str, str | None]) -> dict[str, str | None]:
        """Return answers without the address of the model before, if a known provider's follows it."""
        model, base = answers.get("model"), self.settings.model_api_base
        moved = model != self.settings.model and provider_of(model or "") is not None
        if moved and base and answers.get("model_api_base") == base:
            return {**answers, "model_api_base": None}
        return answers

    def _stored(self, field: str) -> str:
        """Return a setting's value if it was set, else empty: a default may be set, too."""
        if field not in self.settings.model_fields_set:
            return ""
        value = getattr(self.settings, field)
        if field == "web_listen" and value is None:
            return "off"
        return "" if value is None else str(value)

    async def check(self, step: Step, answers: Answers) -> Outcome:
        """Try answers against what they are for.

        Raises:
            SettingsError: They do not fit each other.
        """
        candidate = self._candidate(self._fields(step, answers))
        if step.name == "model":
            outcome = await self._check_model(candidate, answers)
        elif step.name == "web":
            outcome = await check_site(candidate, with_link=self._with_link)
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
        values = self._variables(step, answers)
        secret = bool(self._typed(step, answers))
        fields = Settings.model_fields
        comments = {
            f"{PREFIX}{name.upper()}": field.description or "" for name, field in fields.items()
        }
        comments |= {
            one.variable: _("Key for {provider}.", provider=one.title) for one in PROVIDERS.values()
        }
        written = self.files.write(values, comments, secret=secret)
        export_dotenv()
        self.settings = load_settings(home=self.settings.home)
        return written

    async def _check_model(self, candidate: Settings, answers: Answers) -> Outcome:
        model = candidate.model or "offline"
        key = answers.get(_KEY)
        if key is None and _KEY not in answers:
            own = self.settings.model_api_key
            if own is not None and self._keeps_key(answers):
                key = own.get_secret_value()
        if key is None and needs_key(model) and candidate.model_api_base is None:
            key = read_variable(self.settings, self._key_variable(answers))
        return await check_model(candidate, key)

    def _candidate(self, values: Mapping[str, str | None]) -> Settings:
        """Return the settings as they would be."""
        given = {field: value or "" for field, value in values.items()}
        return load_settings(home=self.settings.home, **given)

    def _fields(self, step: Step, answers: Answers) -> dict[str, str | None]:
        """Return the settings that a step changes, with what goes with them."""
        if step.name != "model":
            return dict(answers)
        found: dict[str, str | None] = dict(answers)
        if "model" in answers:
            # An address and a key belong to the model that they were given for.
            found.setdefault("model_api_base", None)
            if not self._keeps_key(answers):
                found.setdefault(_KEY, None)
        return found

    def _variables(self, step: Step, answers: Answers) -> dict[str, str | None]:
        values = {
            f"{PREFIX}{field.upper()}": value
            for field, value in self._fields(step, answers).items()
        }
        if _KEY in answers:
            values[f"{PREFIX}{_KEY.upper()}"] = None
            values[self._key_variable(answers)] = answers[_KEY]
        return values

    def _key_variable(self, answers: Answers) -> str:
        """Return the variable of the key: the provider's own, which its other models share."""
        kept = None if "model" in answers else self.settings.model_api_base
        base = answers.get("model_api_base", kept)
        model = answers.get("model") or self.settings.model or "offline"
        provider = provider_of(model)
        if provider is None or base:
            return f"{PREFIX}{_KEY.upper()}"
        return provider.variable

    def _keeps_key(self, answers: Answers) -> bool:
        """Return whether the key that is set fits the model after these answers."""
        if "model" not in answers:
            return True
        before, after = self.settings.model or "offline", answers["model"] or "offline"
        same_address = (answers.get("model_api_base") or None) == self.settings.model_api_base
        return provider_name(before) == provider_name(after) and same_address

    def _typed(self, step: Step, answers: Answers) -> list[str]:
        """Return the secrets among answers."""
        secret = {question.field for question in step.questions if question.secret}
        return [value for field, value in answers.items() if field in secret and value]
