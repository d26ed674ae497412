"""The settings: one typed tree, read from the environment, ``.env`` and an optional TOML file.

Rule 1: of two sources the nearer wins: arguments, environment, ``.env``, TOML file, default.
Rule 2: an empty value means the default, in every source.
Rule 3: a name that this version does not know is an error, never ignored.
Rule 4: an error names the variable, what was given and what is allowed; a secret is never shown.
"""

from bot.runtime.settings.load import export_dotenv, load_settings
from bot.runtime.settings.schema import PREFIX, Settings
from bot.runtime.settings.validators import ModelName, ProcessRole

__all__ = ["PREFIX", "ModelName", "ProcessRole", "Settings", "export_dotenv", "load_settings"]
