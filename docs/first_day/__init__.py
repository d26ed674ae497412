"""The first day of a stranger with tapebot, played on a bare Debian."""
