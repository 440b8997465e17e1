"""What a page shows, collected from a session, a group or a recording."""
