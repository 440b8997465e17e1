"""The applications (one recording, two side by side, the list of recordings), and the actions of their keys."""
