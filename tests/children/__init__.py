"""Every fixture as a child: forked by another program, and started by one."""
