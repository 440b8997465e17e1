"""The page's HTML: all texts are escaped here, and nothing is asked here."""
