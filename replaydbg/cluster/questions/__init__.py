"""The questions of tasks, and the handlers that answer them where they run."""
