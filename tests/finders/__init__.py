"""How soon a bug of scheduling shows: in plain runs, with `hunt --chaos`, and in futures of a run that passed."""
