"""The role of a pytest process in a recorded session, chosen before the user's code loads: restart, record, show."""
