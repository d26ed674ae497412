"""The agent loop: run a turn from message to answer, with commands, tools and consolidation."""
