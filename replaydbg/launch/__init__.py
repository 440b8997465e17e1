"""What recording and replaying both need to start a program: options, environment, process, the core's orders."""
