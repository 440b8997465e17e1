"""Rows for the operating system: files, directories, descriptors, processes, users, signals, terminals."""

from __future__ import annotations

from replaydbg.gates.row import (
    ALWAYS,
    ARGS,
    BOTH,
    CLOSES,
    COPIES,
    DIGEST,
    FILLS,
    FILLS_ALL,
    HEARS,
    MAKES_NOTHING,
    NO_BUFFER,
    NOTED,
    OPENS,
    PATH,
    READS,
    SELF,
    STOPS,
    WRITES_FD,
    Row,
    rows,
)

PATHS = ARGS | PATH

POSIX: list[Row] = [
    *rows(
        "posix",
        """
        access chdir chmod chown chroot confstr ctermid fchdir fchmod fchown fdatasync fpathconf
        fstat fstatvfs fsync ftruncate get_blocking get_inheritable get_terminal_size getgrouplist getpgid getpriority
        getsid getxattr initgroups isatty killpg lchown link listdir listxattr lockf login_tty lseek lstat mkdir
        mkfifo mknod nice pathconf posix_fadvise posix_fallocate readlink remove removexattr
        rename replace rmdir sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getparam
        sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setparam sched_setscheduler
        set_blocking set_inheritable setegid seteuid setgid setgroups setns setpgid setpriority setregid setresgid
        setresuid setreuid setuid setxattr stat statvfs symlink sysconf tcgetpgrp tcsetpgrp truncate
        ttyname umask unlink unshare utime waitid waitpid getrandom urandom eventfd_read eventfd_write
        device_encoding timerfd_settime timerfd_settime_ns timerfd_gettime timerfd_gettime_ns grantpt unlockpt ptsname
        """,
        PATHS,
    ),
    *rows(
        "posix",
        """
        cpu_count getcwd getcwdb getgroups getloadavg getlogin getresgid getresuid sched_yield setpgrp setsid sync times
        uname wait
        """,
        0,
    ),
    *rows("posix", "getpid", MAKES_NOTHING, "os_getpid"),
    *rows("posix", "getppid getpgrp getuid geteuid getgid getegid", MAKES_NOTHING),
    *rows("posix", "open", PATHS | OPENS),
    *rows("posix", "pipe pipe2 openpty memfd_create eventfd timerfd_create posix_openpt", ARGS | OPENS),
    *rows("posix", "pidfd_open", ARGS | OPENS, "os_pidfd_open"),
    *rows("posix", "dup dup2", ARGS | OPENS | COPIES),
    *rows("posix", "close", ARGS | CLOSES | BOTH, "os_close"),
    *rows("posix", "closerange", ARGS, "os_closerange"),
    *rows("posix", "read", ARGS | READS),
    *rows("posix", "pread"),
    *rows("posix", "write", ARGS | DIGEST | WRITES_FD, buffer=1),
    *rows("posix", "pwrite", ARGS | DIGEST | WRITES_FD, buffer=1),
    *rows("posix", "copy_file_range sendfile splice", PATHS, "os_transfer"),
    *rows("posix", "readv preadv", ARGS | FILLS, "os_readv", 1),
    *rows("posix", "readinto", ARGS | FILLS | READS, buffer=1),
    *rows("posix", "writev pwritev", ARGS | DIGEST, "os_writev", 1),
    *rows("posix", "scandir", ARGS, "os_scandir"),
    *rows("posix", "ScandirIterator.__next__", 0, "slot"),
    *rows("posix", "DirEntry.is_dir DirEntry.is_file DirEntry.is_symlink DirEntry.is_junction", ARGS | SELF),
    *rows("posix", "DirEntry.inode", ARGS | SELF),
    *rows("posix", "DirEntry.stat", ARGS | SELF, "direntry_stat"),
    *rows("posix", "wait3 wait4", ARGS, "os_wait_usage"),
    *rows("posix", "fork", 0, "os_fork"),
    *rows("posix", "forkpty", 0, "os_forkpty"),
    *rows("posix", "posix_spawn posix_spawnp", PATHS, "spawns_process"),
    *rows("posix", "system", PATHS, "os_system"),
    *rows("posix", "_exit", ARGS, "os_exit"),
    *rows("posix", "abort", 0, "os_abort"),
    *rows("posix", "execv execve", PATHS, "os_exec"),
]
"""Not listed, because they only compute:

`fspath`, `strerror`, `major`, `W*`, `_path_*`, `putenv`, `register_at_fork`.
"""

FILES: list[Row] = [
    *rows("_io", "FileIO.__init__", ARGS, "slot"),
    *rows("_io", "FileIO.read FileIO.readall", ARGS | SELF | READS),
    *rows("_io", "FileIO.readinto", ARGS | SELF | FILLS | READS, buffer=0),
    *rows("_io", "FileIO.write", ARGS | SELF | DIGEST, "file_write", 0),
    *rows("_io", "FileIO.seek FileIO.tell FileIO.truncate FileIO.seekable", ARGS | SELF),
    *rows("_io", "FileIO.isatty FileIO._isatty_open_only", ARGS | SELF),
    *rows("_io", "FileIO.close", ARGS | SELF | BOTH, "file_close"),
    *rows("_io", "FileIO.fileno", ARGS | SELF | FILLS, "file_fileno"),
    *rows("builtins", "input", ARGS, "builtin_input"),
    *rows("readline", "read_history_file", PATHS, "readline_read_history"),
    *rows("readline", "write_history_file append_history_file read_init_file", PATHS),
    *rows("readline", "get_line_buffer get_begidx get_endidx get_completion_type", 0),
    *rows("readline", "insert_text redisplay"),
    *rows(
        "readline",
        "set_completer set_startup_hook set_pre_input_hook set_completion_display_matches_hook",
        ALWAYS,
        "readline_hook",
    ),
    *rows("readline", "get_completer", ALWAYS, "readline_completer"),
    *rows("readline", "set_auto_history", ALWAYS, "readline_auto_history"),
    *rows("mmap", "mmap.__new__", ARGS | FILLS, "slot"),
    *rows("mmap", "mmap.size", 0),
    *rows("mmap", "mmap.resize", ARGS | FILLS | BOTH | HEARS, "map_resize", NO_BUFFER),
    *rows("fcntl", "flock lockf"),
    *rows("fcntl", "fcntl", ARGS, "fcntl_fcntl"),
    *rows("fcntl", "ioctl", ARGS | FILLS | FILLS_ALL, buffer=2),
    *rows("termios", "tcgetattr tcsetattr tcsendbreak tcdrain tcflush tcflow tcgetwinsize tcsetwinsize"),
    *rows("select", "select", ARGS, "select_select"),
    *rows("select", "poll().poll"),
    *rows("select", "epoll.__new__", 0, "slot"),
    *rows("select", "epoll.register epoll.modify epoll.unregister", ARGS, "takes_descriptor"),
    *rows("select", "epoll.poll epoll.fileno"),
    *rows("select", "epoll.close", ARGS | BOTH),
]

PROCESSES: list[Row] = [
    *rows("_posixsubprocess", "fork_exec", ARGS, "fork_exec"),
    *rows("_posixshmem", "shm_open", ARGS | OPENS),
    *rows("_posixshmem", "shm_unlink"),
    *rows("_multiprocessing", "SemLock.__new__", ARGS, "slot"),
    *rows("_multiprocessing", "SemLock._rebuild", ARGS, "semlock_rebuild"),
    *rows("_multiprocessing", "SemLock.acquire SemLock.release SemLock.__exit__ sem_unlink", ARGS),
    *rows(
        "_multiprocessing", "SemLock.__enter__ SemLock._count SemLock._is_mine SemLock._is_zero SemLock._get_value", 0
    ),
    *rows("_signal", "signal", ARGS | ALWAYS, "signal_signal"),
    *rows("_signal", "getsignal", ALWAYS, "signal_getsignal"),
    *rows(
        "_signal",
        """
        alarm getitimer setitimer pause pidfd_send_signal pthread_sigmask raise_signal set_wakeup_fd siginterrupt
        sigpending sigtimedwait sigwait sigwaitinfo
        """,
    ),
    *rows("_signal", "pthread_kill"),
    *rows("posix", "kill", ARGS, "os_kill"),
    *rows("_thread", "get_native_id", 0),
    # As C code calls them, for instance through ctypes, for a thread of the program.
    *rows("libc", "pthread_getaffinity_np pthread_getschedparam", ARGS | FILLS, "native"),
    *rows("libc", "pthread_setaffinity_np pthread_setschedparam", ARGS | DIGEST, "native"),
    *rows("libc", "pthread_setschedprio", ARGS, "native"),
    *rows("_imp", "release_lock", ALWAYS, "imp_release_lock"),
    *rows("_thread", "interrupt_main"),
    # Its tracebacks are printed by a signal handler in C, and a replay gets no signal.
    *rows("faulthandler", "register", 0, NOTED),
    *rows("resource", "getrusage getrlimit setrlimit prlimit getpagesize"),
    *rows("pwd", "getpwuid getpwnam getpwall"),
    *rows("grp", "getgrgid getgrnam getgrall"),
    *rows("spwd", "getspnam getspall"),
    *rows("_locale", "setlocale", ARGS | BOTH),
    *rows("_locale", "localeconv nl_langinfo getencoding"),
    *rows("syslog", "syslog openlog closelog setlogmask"),
    # Memory statistics differ between any two runs, and include the tool's own allocations.
    *rows("sys", "getallocatedblocks getrefcount getunicodeinternedsize", 0),
    *rows("sys", "_debugmallocstats", 0, NOTED),
    *rows("_tracemalloc", "get_traced_memory get_tracemalloc_memory _get_traces _get_object_traceback", 0),
    *rows("sys", "addaudithook", 0, NOTED),
    *rows("sys", "remote_exec", ARGS | PATH),
    *rows("gc", "get_count get_stats", 0),
    *rows("gc", "set_debug", 0, "gc_set_debug"),
    *rows("gc", "collect", ARGS | BOTH, "gc_collect"),
    *rows("_dbm", "open", 0, STOPS),
    *rows("_gdbm", "open", 0, STOPS),
    *rows("_curses", "initscr", 0, STOPS),
    *rows("_tkinter", "create", 0, STOPS),
]
