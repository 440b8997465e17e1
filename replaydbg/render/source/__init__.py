"""Source lines for every front end: coloured pieces, values beside lines, and the part of a run that is of interest."""
