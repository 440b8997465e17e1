"""What a pytest process does in a recorded session, decided before it loads the user's code: restart, record, show."""
