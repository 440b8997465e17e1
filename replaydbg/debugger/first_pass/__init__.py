"""Results of the first pass over a recording: index, output, end and the failure of its test."""
