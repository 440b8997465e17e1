"""The panels: each draws one part of the view model, and posts what the user chose."""
