"""AgentDojo against tapebot: what a model that obeys an attacker can do."""
