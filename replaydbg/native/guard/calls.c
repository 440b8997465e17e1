/* Which system calls a replay may make: one row for each call that Linux has, by subject. What has no row is refused.
 *
 * Allowed is what stays inside the process, and what only asks. A replay has nothing open for writing but the user's standard
 * streams, its own pipes and its own memory files, so reading and writing what is open needs no check. Everything else is refused, which ends the
 * replay with the name of the call: an answer such as EPERM could send the program another way than recorded. Where a row answers with an error
 * all the same, it says why.
 *
 * Long because it is a table. */
#include "guard/inside.h"
#include <asm/ioctls.h>
#include <asm/unistd.h>
#include <fcntl.h>
#include <linux/prctl.h>

#ifndef __NR_read
#error "without <asm/unistd.h> what depends on the numbers of calls would be left out"
#endif

#define ROW(name, kind) {__NR_##name, kind, 0, #name}
#define ROW_P(name, kind, path) {__NR_##name, kind, path, #name} /* path: which argument is one */
/* Calls that are younger than the kernel's headers may be; their numbers are the same on every architecture. */
#define YOUNG(name, number, kind) {number, kind, 0, #name}
#define YOUNG_P(name, number, kind, path) {number, kind, path, #name}

const SystemCall system_calls[] = {
    /* descriptors: what is open */
    ROW(read, INSIDE), ROW(readv, INSIDE), ROW(pread64, INSIDE), ROW(preadv, INSIDE), ROW(preadv2, INSIDE),
    ROW(write, INSIDE), ROW(writev, INSIDE), ROW(pwrite64, INSIDE), ROW(pwritev, INSIDE), ROW(pwritev2, INSIDE),
    ROW(lseek, INSIDE), ROW(sendfile, INSIDE), ROW(splice, INSIDE), ROW(tee, INSIDE), ROW(copy_file_range, INSIDE),
    ROW(fsync, INSIDE), ROW(fdatasync, INSIDE), ROW(readahead, INSIDE), ROW(fadvise64, INSIDE),
    ROW(close, CLOSES), ROW(dup, INSIDE), ROW(dup3, COPIES_TO), ROW(fcntl, ASKS_DESCRIPTOR), ROW(ioctl, ASKS_TERMINAL),
    ROW(ftruncate, CHANGES_FILE), ROW(fallocate, CHANGES_FILE),
    YOUNG(close_range, 436, MISSING), /* callers then close one by one, which leaves the tool's descriptors open */
    ROW(vmsplice, REFUSED), ROW(sync_file_range, REFUSED), ROW(flock, REFUSED),
    /* descriptors that reach nothing outside */
    ROW(pipe2, INSIDE), ROW(eventfd2, INSIDE), ROW(memfd_create, INSIDE), ROW(epoll_create1, INSIDE), ROW(epoll_ctl, INSIDE),
    ROW(epoll_pwait, INSIDE), YOUNG(epoll_pwait2, 441, INSIDE), ROW(ppoll, INSIDE), ROW(pselect6, INSIDE),
    ROW(timerfd_create, INSIDE), ROW(timerfd_settime, INSIDE), ROW(timerfd_gettime, INSIDE), ROW(signalfd4, INSIDE),
    YOUNG(memfd_secret, 447, REFUSED), ROW(userfaultfd, REFUSED),
    /* files: to look at and to read */
    ROW_P(openat, READS, 2), ROW(fstat, INSIDE), ROW_P(newfstatat, INSIDE, 2), ROW_P(statx, INSIDE, 2), ROW_P(statfs, INSIDE, 1),
    ROW(fstatfs, INSIDE), ROW_P(faccessat, INSIDE, 2), YOUNG_P(faccessat2, 439, INSIDE, 2), ROW_P(readlinkat, INSIDE, 2),
    ROW(getcwd, INSIDE), ROW_P(chdir, INSIDE, 1), ROW(fchdir, INSIDE), ROW(umask, INSIDE), ROW(getdents64, INSIDE),
    ROW_P(getxattr, INSIDE, 1), ROW_P(lgetxattr, INSIDE, 1), ROW(fgetxattr, INSIDE), ROW_P(listxattr, INSIDE, 1),
    ROW_P(llistxattr, INSIDE, 1), ROW(flistxattr, INSIDE), YOUNG_P(getxattrat, 464, INSIDE, 2),
    YOUNG_P(listxattrat, 465, INSIDE, 2), YOUNG_P(file_getattr, 468, INSIDE, 2),
    YOUNG_P(openat2, 437, REFUSED, 2), /* its flags are in memory, which a filter does not see */
    ROW_P(name_to_handle_at, REFUSED, 2), ROW(open_by_handle_at, REFUSED), ROW(inotify_init1, REFUSED),
    ROW_P(inotify_add_watch, REFUSED, 2), ROW(inotify_rm_watch, REFUSED), ROW(fanotify_init, REFUSED), ROW(fanotify_mark, REFUSED),
    ROW(lookup_dcookie, REFUSED), YOUNG(cachestat, 451, REFUSED), YOUNG(statmount, 457, REFUSED), YOUNG(listmount, 458, REFUSED),
    /* files: to change */
    ROW_P(unlinkat, REFUSED, 2), ROW_P(renameat2, REFUSED, 2), ROW_P(mkdirat, REFUSED, 2), ROW_P(linkat, REFUSED, 2),
    ROW_P(symlinkat, REFUSED, 1), ROW_P(mknodat, REFUSED, 2), ROW_P(fchmodat, REFUSED, 2), YOUNG_P(fchmodat2, 452, REFUSED, 2),
    ROW(fchmod, REFUSED), ROW_P(fchownat, REFUSED, 2), ROW(fchown, REFUSED), ROW_P(truncate, REFUSED, 1),
    ROW_P(utimensat, REFUSED, 2), ROW_P(setxattr, REFUSED, 1), ROW_P(lsetxattr, REFUSED, 1), ROW(fsetxattr, REFUSED),
    ROW_P(removexattr, REFUSED, 1), ROW_P(lremovexattr, REFUSED, 1), ROW(fremovexattr, REFUSED),
    YOUNG_P(setxattrat, 463, REFUSED, 2), YOUNG_P(removexattrat, 466, REFUSED, 2), YOUNG_P(file_setattr, 469, REFUSED, 2),
    ROW(sync, REFUSED), ROW(syncfs, REFUSED),
    /* asynchronous work, which no filter sees */
    YOUNG(io_uring_setup, 425, MISSING), YOUNG(io_uring_enter, 426, MISSING), YOUNG(io_uring_register, 427, MISSING),
    ROW(io_setup, MISSING), ROW(io_destroy, MISSING), ROW(io_submit, MISSING), ROW(io_cancel, MISSING), ROW(io_getevents, MISSING),
    ROW(io_pgetevents, MISSING),
    /* memory */
    ROW(mmap, INSIDE), ROW(munmap, INSIDE), ROW(mremap, INSIDE), ROW(mprotect, INSIDE), ROW(madvise, INSIDE), ROW(brk, INSIDE),
    ROW(msync, INSIDE), ROW(mincore, INSIDE), ROW(mlock, INSIDE), ROW(mlock2, INSIDE), ROW(munlock, INSIDE), ROW(mlockall, INSIDE),
    ROW(munlockall, INSIDE), ROW(membarrier, INSIDE), ROW(pkey_alloc, INSIDE), ROW(pkey_free, INSIDE), ROW(pkey_mprotect, INSIDE),
    ROW(mbind, INSIDE), ROW(get_mempolicy, INSIDE), ROW(set_mempolicy, INSIDE), YOUNG(set_mempolicy_home_node, 450, INSIDE),
    YOUNG(map_shadow_stack, 453, INSIDE), YOUNG(mseal, 462, INSIDE), ROW(remap_file_pages, REFUSED), ROW(process_vm_readv, ITSELF),
    ROW(process_vm_writev, REFUSED), ROW(move_pages, REFUSED), ROW(migrate_pages, REFUSED), YOUNG(process_madvise, 440, REFUSED),
    YOUNG(process_mrelease, 448, REFUSED),
    /* threads, and waiting */
    ROW(clone, NEW_THREAD), YOUNG(clone3, 435, MISSING), /* its flags are in memory; the C library then uses clone */
    ROW(futex, INSIDE), YOUNG(futex_waitv, 449, INSIDE), YOUNG(futex_wake, 454, INSIDE), YOUNG(futex_wait, 455, INSIDE),
    YOUNG(futex_requeue, 456, INSIDE), ROW(set_robust_list, INSIDE), ROW(get_robust_list, ITSELF_OR_ZERO), ROW(set_tid_address, INSIDE),
    ROW(rseq, INSIDE), ROW(gettid, INSIDE), ROW(sched_yield, INSIDE), ROW(nanosleep, INSIDE), ROW(clock_nanosleep, INSIDE),
    ROW(restart_syscall, INSIDE), ROW(exit, INSIDE), ROW(exit_group, ENDS),
    /* signals: to itself; those that come from outside come from the log, and so do those of timers */
    ROW(rt_sigaction, HANDLES), ROW(rt_sigprocmask, INSIDE), ROW(rt_sigreturn, INSIDE), ROW(rt_sigpending, INSIDE),
    ROW(rt_sigtimedwait, INSIDE), ROW(rt_sigsuspend, INSIDE), ROW(sigaltstack, INSIDE), ROW(kill, ITSELF), ROW(tkill, ITSELF),
    ROW(tgkill, ITSELF), ROW(rt_sigqueueinfo, ITSELF), ROW(rt_tgsigqueueinfo, ITSELF), YOUNG(pidfd_open, 434, ITSELF),
    YOUNG(pidfd_send_signal, 424, REFUSED), ROW(getitimer, INSIDE), ROW(setitimer, REFUSED), ROW(timer_create, REFUSED),
    ROW(timer_settime, REFUSED), ROW(timer_gettime, INSIDE), ROW(timer_getoverrun, INSIDE), ROW(timer_delete, REFUSED),
    /* the process, and questions about it. Those that name a process are allowed for any: they change nothing, and the threads of this
     * one have numbers that a filter does not know */
    ROW(getpid, INSIDE), ROW(getppid, INSIDE), ROW(getpgid, INSIDE), ROW(getsid, INSIDE), ROW(getuid, INSIDE), ROW(geteuid, INSIDE),
    ROW(getgid, INSIDE), ROW(getegid, INSIDE), ROW(getresuid, INSIDE), ROW(getresgid, INSIDE), ROW(getgroups, INSIDE), ROW(capget, INSIDE),
    ROW(times, INSIDE), ROW(getrusage, INSIDE), ROW(getcpu, INSIDE), ROW(sysinfo, INSIDE), ROW(uname, INSIDE), ROW(getrandom, INSIDE),
    ROW(clock_gettime, INSIDE), ROW(clock_getres, INSIDE), ROW(gettimeofday, INSIDE), ROW(prctl, ASKS_PROCESS),
    ROW(personality, ASKS_PERSONALITY), ROW(wait4, INSIDE), ROW(waitid, INSIDE), ROW(getrlimit, INSIDE), ROW(setrlimit, INSIDE),
    ROW(prlimit64, OWN_LIMITS), ROW(getpriority, INSIDE), ROW(setpriority, OWN_PRIORITY), ROW(ioprio_get, INSIDE),
    ROW(ioprio_set, OWN_IO_PRIORITY), ROW(sched_getaffinity, INSIDE), ROW(sched_setaffinity, ITSELF_OR_ZERO), ROW(sched_getparam, INSIDE),
    ROW(sched_setparam, ITSELF_OR_ZERO), ROW(sched_getscheduler, INSIDE), ROW(sched_setscheduler, ITSELF_OR_ZERO),
    ROW(sched_getattr, INSIDE), ROW(sched_setattr, ITSELF_OR_ZERO), ROW(sched_get_priority_max, INSIDE),
    ROW(sched_get_priority_min, INSIDE), ROW(sched_rr_get_interval, INSIDE), YOUNG(lsm_get_self_attr, 459, INSIDE),
    YOUNG(lsm_list_modules, 461, INSIDE),
    /* other processes, and what this one may do */
    ROW_P(execve, REFUSED, 1), ROW_P(execveat, REFUSED, 2), ROW(ptrace, REFUSED), ROW(kcmp, REFUSED), YOUNG(pidfd_getfd, 438, REFUSED),
    ROW(setpgid, REFUSED), ROW(setsid, REFUSED), ROW(setuid, REFUSED), ROW(setgid, REFUSED), ROW(setreuid, REFUSED),
    ROW(setregid, REFUSED), ROW(setresuid, REFUSED), ROW(setresgid, REFUSED), ROW(setfsuid, REFUSED), ROW(setfsgid, REFUSED),
    ROW(setgroups, REFUSED), ROW(capset, REFUSED), ROW(unshare, REFUSED), ROW(setns, REFUSED), ROW(perf_event_open, REFUSED),
    ROW(seccomp, REFUSED), /* only fence_seal() adds a filter; one of the program's own could hide what the tool writes */
    YOUNG(landlock_create_ruleset, 444, REFUSED), YOUNG(landlock_add_rule, 445, REFUSED), YOUNG(landlock_restrict_self, 446, REFUSED),
    YOUNG(lsm_set_self_attr, 460, REFUSED),
    /* sockets: a pair reaches nothing, and what stands for the program's sockets is an end of one */
    ROW(socketpair, UNIX_PAIR), ROW(recvfrom, INSIDE), ROW(recvmsg, INSIDE), ROW(recvmmsg, INSIDE), ROW(getsockname, INSIDE),
    ROW(getpeername, INSIDE), ROW(getsockopt, INSIDE), ROW(setsockopt, CHANGES_FILE), ROW(shutdown, CHANGES_FILE),
    ROW(socket, REFUSED), ROW(connect, REFUSED), ROW(bind, REFUSED), ROW(listen, REFUSED), ROW(accept, REFUSED), ROW(accept4, REFUSED),
    ROW(sendto, REFUSED), ROW(sendmsg, TO_DEBUGGER), ROW(sendmmsg, REFUSED),
    /* objects that other processes see */
    ROW(msgget, REFUSED), ROW(msgsnd, REFUSED), ROW(msgrcv, REFUSED), ROW(msgctl, REFUSED), ROW(semget, REFUSED), ROW(semop, REFUSED),
    ROW(semtimedop, REFUSED), ROW(semctl, REFUSED), ROW(shmget, REFUSED), ROW(shmat, REFUSED), ROW(shmdt, REFUSED), ROW(shmctl, REFUSED),
    ROW_P(mq_open, REFUSED, 1), ROW_P(mq_unlink, REFUSED, 1), ROW(mq_timedsend, REFUSED), ROW(mq_timedreceive, REFUSED),
    ROW(mq_notify, REFUSED), ROW(mq_getsetattr, REFUSED), ROW_P(add_key, REFUSED, 1), ROW_P(request_key, REFUSED, 1), ROW(keyctl, REFUSED),
    /* the machine */
    ROW_P(mount, REFUSED, 2), ROW_P(umount2, REFUSED, 1), ROW_P(pivot_root, REFUSED, 1), ROW_P(chroot, REFUSED, 1),
    YOUNG_P(open_tree, 428, REFUSED, 2), YOUNG_P(move_mount, 429, REFUSED, 2), YOUNG_P(fsopen, 430, REFUSED, 1),
    YOUNG(fsconfig, 431, REFUSED), YOUNG(fsmount, 432, REFUSED), YOUNG_P(fspick, 433, REFUSED, 2),
    YOUNG_P(mount_setattr, 442, REFUSED, 2), YOUNG_P(open_tree_attr, 467, REFUSED, 2), ROW_P(quotactl, REFUSED, 2),
    YOUNG(quotactl_fd, 443, REFUSED), ROW(reboot, REFUSED), ROW_P(sethostname, REFUSED, 1), ROW_P(setdomainname, REFUSED, 1),
    ROW(settimeofday, REFUSED), ROW(clock_settime, REFUSED), ROW(adjtimex, REFUSED), ROW(clock_adjtime, REFUSED), ROW(syslog, REFUSED),
    ROW_P(swapon, REFUSED, 1), ROW_P(swapoff, REFUSED, 1), ROW_P(acct, REFUSED, 1), ROW(init_module, REFUSED), ROW(finit_module, REFUSED),
    ROW_P(delete_module, REFUSED, 1), ROW(kexec_load, REFUSED), ROW(kexec_file_load, REFUSED), ROW(bpf, REFUSED), ROW(vhangup, REFUSED),
    ROW(nfsservctl, REFUSED),
#ifdef __NR_renameat
    ROW_P(renameat, REFUSED, 2),
#endif
#ifdef __x86_64__ /* the older forms, which newer architectures never had */
    ROW_P(open, READS, 1), ROW_P(stat, INSIDE, 1), ROW_P(lstat, INSIDE, 1), ROW_P(access, INSIDE, 1), ROW_P(readlink, INSIDE, 1),
    ROW(getdents, INSIDE), ROW(dup2, COPIES_TO), ROW(pipe, INSIDE), ROW(eventfd, INSIDE), ROW(epoll_create, INSIDE),
    ROW(epoll_wait, INSIDE), ROW(poll, INSIDE), ROW(select, INSIDE), ROW(signalfd, INSIDE), ROW(pause, INSIDE), ROW(time, INSIDE),
    ROW(getpgrp, INSIDE), ROW(arch_prctl, INSIDE), ROW_P(creat, REFUSED, 1), ROW_P(unlink, REFUSED, 1), ROW_P(rename, REFUSED, 1),
    ROW_P(mkdir, REFUSED, 1), ROW_P(rmdir, REFUSED, 1), ROW_P(link, REFUSED, 1), ROW_P(symlink, REFUSED, 1), ROW_P(mknod, REFUSED, 1),
    ROW_P(chmod, REFUSED, 1), ROW_P(chown, REFUSED, 1), ROW_P(lchown, REFUSED, 1), ROW_P(utime, REFUSED, 1), ROW_P(utimes, REFUSED, 1),
    ROW_P(futimesat, REFUSED, 2), ROW(fork, REFUSED), ROW(vfork, REFUSED), ROW(alarm, REFUSED), ROW(inotify_init, REFUSED),
    ROW_P(uselib, REFUSED, 1), ROW(ustat, REFUSED), ROW(sysfs, REFUSED), ROW(modify_ldt, REFUSED), ROW(_sysctl, REFUSED), ROW(iopl, REFUSED),
    ROW(ioperm, REFUSED), ROW(create_module, REFUSED), ROW(get_kernel_syms, REFUSED), ROW(query_module, REFUSED), ROW(getpmsg, REFUSED),
    ROW(putpmsg, REFUSED), ROW(afs_syscall, REFUSED), ROW(tuxcall, REFUSED), ROW(security, REFUSED), ROW(set_thread_area, REFUSED),
    ROW(get_thread_area, REFUSED), ROW(epoll_ctl_old, REFUSED), ROW(epoll_wait_old, REFUSED), ROW(vserver, REFUSED),
    YOUNG(uretprobe, 335, REFUSED), YOUNG(uprobe, 336, REFUSED),
#endif
};
const int system_call_count = sizeof system_calls / sizeof *system_calls;

/* What a terminal or a file is asked, and what changes the descriptor alone. Not: what changes a terminal, types into it or takes it over. */
const uint32_t ioctl_requests[] = {
    TCGETS, TCGETA, 0x802C542A /* TCGETS2 */, TIOCGWINSZ, TIOCGPGRP, TIOCGSID, TIOCOUTQ, TIOCGETD, TIOCGPTN, FIONREAD, FIOCLEX, FIONCLEX,
    FIOQSIZE, LIST_END,
};

/* Besides F_SETFL and FIONBIO, which filter.c looks at closer. Not: locks, leases, notifications, and signals (F_SETOWN, F_SETSIG). */
const uint32_t fcntl_commands[] = {
    F_DUPFD, F_GETFD, F_SETFD, F_GETFL, 1027 /* F_DUPFD_QUERY */, 1028 /* F_CREATED_QUERY */, 1030 /* F_DUPFD_CLOEXEC */,
    1032 /* F_GETPIPE_SZ */, 1033 /* F_ADD_SEALS */, 1034 /* F_GET_SEALS */, LIST_END,
};

/* Besides PR_SET_PDEATHSIG, which the engine's copies use. PR_SET_VMA names memory, as the C library does. */
const uint32_t prctl_options[] = {
    PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_TIMING, PR_SET_NAME, PR_GET_NAME, PR_GET_SECCOMP, PR_CAPBSET_READ,
    PR_GET_SECUREBITS, PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_GET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS,
    PR_GET_TID_ADDRESS, PR_SET_THP_DISABLE, PR_GET_THP_DISABLE, PR_GET_SPECULATION_CTRL, 0x53564d41 /* PR_SET_VMA */,
    59 /* PR_SET_SYSCALL_USER_DISPATCH, see libc/trap.c: what it lets through comes here all the same */, LIST_END,
};
