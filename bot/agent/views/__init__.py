"""Ways to make a model's context of a tape."""
