"""The vocabulary of recordings as frozen values. It knows no encoding and no file."""
