"""Run the server in a process: ``python -m testkit.discord --help``."""

from testkit.discord.process import main

main()
