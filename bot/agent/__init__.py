"""The agent loop: one turn from message to answer."""
