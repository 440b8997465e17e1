"""Tasks of a recording and a question each, run in processes of this machine or on the workers of a scheduler."""
