"""Context builders: strategies for rendering a tape as a model's context."""
