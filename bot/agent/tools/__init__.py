"""Tools that the model can call."""
