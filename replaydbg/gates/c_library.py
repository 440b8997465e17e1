"""Functions of C libraries that C code calls: `replaydbg/native/libc/rows.c` and `zmq.c` have the effect of each.

Calls of a function that is not listed here bypass the core in a recording made with this table.
"""

from __future__ import annotations

from replaydbg.gates.row import ARGS, DIGEST, FILLS, Row, rows

C_LIBRARY: list[Row] = [
    *rows(
        "libc",
        """
        getrandom getentropy arc4random arc4random_uniform arc4random_buf clock_gettime clock_getres
        gettimeofday time timespec_get clock times getrusage clock_nanosleep nanosleep usleep sleep
        clock_settime settimeofday alarm ualarm getitimer setitimer timer_create timer_settime timer_gettime
        timer_getoverrun timer_delete getpid getppid gettid getpgrp getpgid getsid setsid setpgid getuid geteuid
        getgid getegid getresuid getresgid getgroups setuid setgid seteuid setegid setreuid setregid setresuid
        setresgid getlogin_r gethostname __gethostname_chk getdomainname gethostid sethostname uname isatty
        ttyname_r umask sysinfo sysconf get_nprocs get_nprocs_conf get_phys_pages get_avphys_pages getloadavg
        getcpu sched_getcpu sched_getaffinity sched_getscheduler sched_setscheduler sched_getparam
        sched_setparam sched_rr_get_interval pthread_getaffinity_np getpriority setpriority nice getrlimit
        getrlimit64 setrlimit setrlimit64 prlimit prlimit64 ioprio_get ioprio_set open open64 openat openat64
        creat creat64 __open_2 __open64_2 __openat_2 __openat64_2 read __read_chk pread pread64 __pread_chk
        __pread64_chk readv preadv preadv64 lseek lseek64 fstat fstat64 stat stat64 lstat lstat64 fstatat
        fstatat64 __fxstat __fxstat64 __xstat __xstat64 __lxstat __lxstat64 statx statfs statfs64 fstatfs
        fstatfs64 statvfs statvfs64 fstatvfs fstatvfs64 access eaccess euidaccess faccessat readlink
        readlinkat __readlink_chk getxattr lgetxattr fgetxattr listxattr mkdir mkdirat rmdir unlink unlinkat
        remove rename renameat renameat2 link linkat symlink symlinkat chmod fchmod fchmodat chown lchown
        fchown fchownat truncate truncate64 ftruncate ftruncate64 utime utimes futimens utimensat fsync
        fdatasync sync mkfifo mknod fallocate fallocate64 posix_fallocate posix_fallocate64 flock lockf
        lockf64 chdir fchdir chroot mount umount2 sendfile sendfile64 copy_file_range splice dup dup2 dup3
        pipe pipe2 eventfd memfd_create signalfd timerfd_create timerfd_settime timerfd_gettime inotify_init
        inotify_init1 inotify_add_watch inotify_rm_watch epoll_create epoll_create1 epoll_ctl epoll_wait
        epoll_pwait poll __poll_chk ppoll select pselect pidfd_open socket socketpair accept accept4 listen
        shutdown recv __recv_chk recvfrom recvmsg getsockname getpeername getsockopt if_nametoindex fork vfork
        system kill killpg tgkill wait waitpid wait4 waitid posix_spawn posix_spawnp getifaddrs getaddrinfo getnameinfo
        ioctl fcntl getcwd
        """,
        ARGS | FILLS,
        "native",
    ),
    # The interpreter reads this clock itself, since 3.14: who waits for a lock may be given it.
    *rows("libc", "clock_of_locks", ARGS | FILLS, "native"),
    *rows(
        "libc",
        """
        sched_setaffinity pthread_setaffinity_np write pwrite pwrite64 writev connect bind send sendto sendmsg
        setsockopt
        """,
        ARGS | FILLS | DIGEST,
        "native",
    ),
]
"""One row for each function; those of the second group send bytes to the outside."""

ZMQ: list[Row] = [
    *rows(
        "libzmq",
        """
        zmq_ctx_new zmq_init zmq_ctx_term zmq_ctx_destroy zmq_term zmq_ctx_shutdown zmq_ctx_set zmq_ctx_get zmq_socket
        zmq_close zmq_getsockopt zmq_bind zmq_connect zmq_unbind zmq_disconnect zmq_socket_monitor zmq_join zmq_leave
        zmq_recv zmq_poll zmq_proxy zmq_proxy_steerable zmq_device zmq_msg_more zmq_msg_get zmq_msg_routing_id
        zmq_curve_keypair zmq_msg_recv zmq_msg_gets
        """,
        ARGS | FILLS,
        "native",
    ),
    *rows("libzmq", "zmq_setsockopt zmq_send zmq_msg_send", ARGS | FILLS | DIGEST, "native"),
]
"""One row for each function of ZeroMQ that pyzmq calls, but for those that concern a message in memory alone."""
