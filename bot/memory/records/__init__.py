"""Records of facts, compartments and episodes, their JSON and their folds; almost all pure."""
