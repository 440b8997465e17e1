"""Edit recordings: cut one out of a running one, splice records out, mix two, reorder lanes."""
