"""Facts, compartments and what entries say: records, their JSON and their folds. Almost all of it is pure."""
