"""Values of an expression at many moments."""
