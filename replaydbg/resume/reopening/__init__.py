"""For each kind of resource: how it is brought back."""
