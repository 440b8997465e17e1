"""Find out which receive got which bytes of which send."""
