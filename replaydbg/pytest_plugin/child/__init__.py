"""The plugin in the recorded process: its own actions are part of the recording, so it asks the outside for nothing."""
