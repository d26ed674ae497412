"""The settings: one typed tree from the environment, ``.env`` and an optional TOML file.

Rule 1: sources win in this order: arguments, environment, ``.env`` of the working directory, ``.env``
    of the home folder, TOML file, default.
Rule 2: an empty value means the default, in every source.
Rule 3: an unknown name is an error, never ignored.
Rule 4: an error names the variable, the given value and the allowed values; secrets are never
    shown.
"""

from bot.runtime.settings.load import (
    env_files,
    export_dotenv,
    exported_variables,
    load_settings,
)
from bot.runtime.settings.model_presets import PresetSettings, runs_in_process
from bot.runtime.settings.schema import ENV_FILE, PREFIX, TOML_FILE, Settings
from bot.runtime.settings.validators import ModelName, ProcessRole

__all__ = [
    "ENV_FILE",
    "PREFIX",
    "TOML_FILE",
    "ModelName",
    "PresetSettings",
    "ProcessRole",
    "Settings",
    "env_files",
    "export_dotenv",
    "exported_variables",
    "load_settings",
    "runs_in_process",
]
