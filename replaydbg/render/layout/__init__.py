"""Where texts are broken, and how wide columns are."""
