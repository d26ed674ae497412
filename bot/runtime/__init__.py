"""The running program: the sessions, how it is built from the settings, and how it is controlled."""
