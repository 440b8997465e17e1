"""Commands that read or manage recordings as files, and run nothing."""
