/* Functions of the C library that ask the outside something, or do something there. See libc.h.
 *
 * What only concerns the process is not here: memory, mutexes, environment, formatting, and the generator behind
 * random(). */
#define _GNU_SOURCE
#include "libc/inside.h"
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <time.h>

#ifndef SYS_read
#error "without <sys/syscall.h> what depends on the numbers of calls would be left out"
#endif

#define NONE {0, 0, 0, 0}
#define OUT(arg, type) {FIXED, arg, 0, sizeof(type)}
#define OUT_BYTES(arg, n) {FIXED, arg, 0, n}
#define OUT_RESULT(arg, unit) {BY_RESULT, arg, 0, unit}
#define OUT_ARGUMENT(arg, by, unit) {BY_ARGUMENT, arg, by, unit}
#define OUT_LENGTH(arg, by) {BY_LENGTH, arg, by, 1}
#define OUT_PIECES(arg, by) {IN_PIECES, arg, by, 1}
#define OUT_MESSAGE(arg) {IN_MESSAGE, arg, 0, 1}
#define OUT_TEXT(arg, by) {IN_TEXT, arg, by, 1}
#define OUT_SET(arg) {IN_SET, arg, 0, 1}
#define R(name, args, result, flags, ...) {#name, args, result, flags, {__VA_ARGS__}, NONE}
#define R0(name, args, result, flags) {#name, args, result, flags, {NONE}, NONE}
#define RIN(name, args, result, flags, ...) {#name, args, result, flags, {NONE}, __VA_ARGS__}
#define OPEN_MODES(name, args)                                                                                         \
    R0(name, args, OF_INT, OPENS_ONE | MAY_WAIT), R0(name##64, args, OF_INT, OPENS_ONE | MAY_WAIT)
#define BOTH_SIZES(name, args, result, flags, ...)                                                                     \
    R(name, args, result, flags, __VA_ARGS__), R(name##64, args, result, flags, __VA_ARGS__)

LibcRow libc_rows[] = {
    /* randomness */
    R(getrandom, "pli", OF_LONG, 0, OUT_RESULT(0, 1)),
    R(getentropy, "pl", OF_INT, 0, OUT_ARGUMENT(0, 1, 1)),
    R0(arc4random, "", PLAIN_INT, 0),
    R0(arc4random_uniform, "i", PLAIN_INT, 0),
    R(arc4random_buf, "pl", PLAIN_LONG, 0, OUT_ARGUMENT(0, 1, 1)),
    /* clocks */
    R(clock_gettime, "ip", OF_INT, 0, OUT(1, struct timespec)),
    R(clock_getres, "ip", OF_INT, 0, OUT(1, struct timespec)),
    R(gettimeofday, "pp", OF_INT, 0, OUT(0, struct timeval), OUT_BYTES(1, 8)),
    R(time, "p", PLAIN_LONG, 0, OUT(0, time_t)),
    R(timespec_get, "pi", PLAIN_INT, 0, OUT(0, struct timespec)),
    R0(clock, "", PLAIN_LONG, 0),
    R(times, "p", PLAIN_ERRNO, 0, OUT(0, struct tms)),
    R(getrusage, "ip", OF_INT, 0, OUT(1, struct rusage)),
    R(clock_nanosleep, "iipp", OF_ERROR, MAY_WAIT | WHATEVER, OUT(3, struct timespec)),
    R(nanosleep, "pp", OF_INT, MAY_WAIT | WHATEVER, OUT(1, struct timespec)),
    R0(usleep, "i", OF_INT, MAY_WAIT),
    R0(sleep, "i", PLAIN_INT, MAY_WAIT),
    R0(clock_settime, "ip", OF_INT, 0),
    R0(settimeofday, "pp", OF_INT, 0),
    /* timers: their signals are in the log */
    R0(alarm, "i", PLAIN_INT, 0),
    R0(ualarm, "ii", PLAIN_INT, 0),
    R(getitimer, "ip", OF_INT, 0, OUT(1, struct itimerval)),
    R(setitimer, "ipp", OF_INT, 0, OUT(2, struct itimerval)),
    R(timer_create, "ipp", OF_INT, 0, OUT_BYTES(2, sizeof(timer_t))),
    R(timer_settime, "pipp", OF_INT, 0, OUT(3, struct itimerspec)),
    R(timer_gettime, "pp", OF_INT, 0, OUT(1, struct itimerspec)),
    R0(timer_getoverrun, "p", OF_INT, 0),
    R0(timer_delete, "p", OF_INT, 0),
    /* who and where the process is */
    R0(getpid, "", PLAIN_INT, 0),
    R0(getppid, "", PLAIN_INT, 0),
    R0(gettid, "", PLAIN_INT, 0),
    R0(getpgrp, "", PLAIN_INT, 0),
    R0(getpgid, "i", OF_INT, 0),
    R0(getsid, "i", OF_INT, 0),
    R0(setsid, "", OF_INT, 0),
    R0(setpgid, "ii", OF_INT, 0),
    R0(getuid, "", PLAIN_INT, 0),
    R0(geteuid, "", PLAIN_INT, 0),
    R0(getgid, "", PLAIN_INT, 0),
    R0(getegid, "", PLAIN_INT, 0),
    R(getresuid, "ppp", OF_INT, 0, OUT_BYTES(0, 4), OUT_BYTES(1, 4), OUT_BYTES(2, 4)),
    R(getresgid, "ppp", OF_INT, 0, OUT_BYTES(0, 4), OUT_BYTES(1, 4), OUT_BYTES(2, 4)),
    R(getgroups, "ip", OF_INT, 0, OUT_ARGUMENT(1, 0, 4)),
    R0(setuid, "i", OF_INT, 0),
    R0(setgid, "i", OF_INT, 0),
    R0(seteuid, "i", OF_INT, 0),
    R0(setegid, "i", OF_INT, 0),
    R0(setreuid, "ii", OF_INT, 0),
    R0(setregid, "ii", OF_INT, 0),
    R0(setresuid, "iii", OF_INT, 0),
    R0(setresgid, "iii", OF_INT, 0),
    R(getlogin_r, "pl", OF_ERROR, 0, OUT_TEXT(0, 1)),
    R(gethostname, "pl", OF_INT, 0, OUT_TEXT(0, 1)),
    R(__gethostname_chk, "pll", OF_INT, 0, OUT_TEXT(0, 1)),
    R(getdomainname, "pl", OF_INT, 0, OUT_TEXT(0, 1)),
    R0(gethostid, "", PLAIN_LONG, 0),
    R0(sethostname, "sl", OF_INT, 0),
    R(uname, "p", OF_INT, 0, OUT(0, struct utsname)),
    R0(isatty, "i", PLAIN_ERRNO, 0),
    R(ttyname_r, "ipl", OF_ERROR, 0, OUT_TEXT(1, 2)),
    R0(umask, "i", PLAIN_INT, 0),
    /* the machine, and what of it the process may use */
    R(sysinfo, "p", OF_INT, 0, OUT(0, struct sysinfo)),
    R0(sysconf, "i", PLAIN_ERRNO, 0),
    R0(get_nprocs, "", PLAIN_INT, 0),
    R0(get_nprocs_conf, "", PLAIN_INT, 0),
    R0(get_phys_pages, "", PLAIN_LONG, 0),
    R0(get_avphys_pages, "", PLAIN_LONG, 0),
    R(getloadavg, "pi", OF_INT, 0, OUT_RESULT(0, 8)),
    R(getcpu, "pp", OF_INT, 0, OUT_BYTES(0, 4), OUT_BYTES(1, 4)),
    R0(sched_getcpu, "", OF_INT, 0),
    R(sched_getaffinity, "ilp", OF_INT, 0, OUT_ARGUMENT(2, 1, 1)),
    RIN(sched_setaffinity, "ilp", OF_INT, 0, OUT_ARGUMENT(2, 1, 1)),
    R0(sched_getscheduler, "i", OF_INT, 0),
    R0(sched_setscheduler, "iip", OF_INT, 0),
    R(sched_getparam, "ip", OF_INT, 0, OUT(1, struct sched_param)),
    R0(sched_setparam, "ip", OF_INT, 0),
    R(sched_rr_get_interval, "ip", OF_INT, 0, OUT(1, struct timespec)),
    R(pthread_getaffinity_np, "plp", OF_ERROR, 0, OUT_ARGUMENT(2, 1, 1)),
    RIN(pthread_setaffinity_np, "plp", OF_ERROR, 0, OUT_ARGUMENT(2, 1, 1)),
    R0(getpriority, "ii", PLAIN_ERRNO, 0),
    R0(setpriority, "iii", OF_INT, 0),
    R0(nice, "i", PLAIN_ERRNO, 0),
    BOTH_SIZES(getrlimit, "ip", OF_INT, 0, OUT(1, struct rlimit)),
    R0(setrlimit, "ip", OF_INT, 0),
    R0(setrlimit64, "ip", OF_INT, 0),
    BOTH_SIZES(prlimit, "iipp", OF_INT, 0, OUT(3, struct rlimit)),
    R0(ioprio_get, "ii", OF_INT, 0),
    R0(ioprio_set, "iii", OF_INT, 0),
    /* files */
    OPEN_MODES(open, "sim"),
    OPEN_MODES(openat, "isim"),
    OPEN_MODES(creat, "si"),
    R0(__open_2, "si", OF_INT, OPENS_ONE | MAY_WAIT),
    R0(__open64_2, "si", OF_INT, OPENS_ONE | MAY_WAIT),
    R0(__openat_2, "isi", OF_INT, OPENS_ONE | MAY_WAIT),
    R0(__openat64_2, "isi", OF_INT, OPENS_ONE | MAY_WAIT),
    R(read, "ipl", OF_LONG, MAY_WAIT, OUT_RESULT(1, 1)),
    R(__read_chk, "ipll", OF_LONG, MAY_WAIT, OUT_RESULT(1, 1)),
    BOTH_SIZES(pread, "ipll", OF_LONG, 0, OUT_RESULT(1, 1)),
    R(__pread_chk, "iplll", OF_LONG, 0, OUT_RESULT(1, 1)),
    R(__pread64_chk, "iplll", OF_LONG, 0, OUT_RESULT(1, 1)),
    R(readv, "ipi", OF_LONG, MAY_WAIT, OUT_PIECES(1, 2)),
    BOTH_SIZES(preadv, "ipil", OF_LONG, 0, OUT_PIECES(1, 2)),
    RIN(write, "ipl", OF_LONG, MAY_WAIT | SHOWN, OUT_ARGUMENT(1, 2, 1)),
    RIN(pwrite, "ipll", OF_LONG, SHOWN, OUT_ARGUMENT(1, 2, 1)),
    RIN(pwrite64, "ipll", OF_LONG, SHOWN, OUT_ARGUMENT(1, 2, 1)),
    RIN(writev, "ipi", OF_LONG, MAY_WAIT | SHOWN, OUT_PIECES(1, 2)),
    R0(lseek, "ili", OF_LONG, 0),
    R0(lseek64, "ili", OF_LONG, 0),
    BOTH_SIZES(fstat, "ip", OF_INT, 0, OUT(1, struct stat)),
    BOTH_SIZES(stat, "sp", OF_INT, 0, OUT(1, struct stat)),
    BOTH_SIZES(lstat, "sp", OF_INT, 0, OUT(1, struct stat)),
    BOTH_SIZES(fstatat, "ispi", OF_INT, 0, OUT(2, struct stat)),
    BOTH_SIZES(__fxstat, "iip", OF_INT, 0, OUT(2, struct stat)),
    BOTH_SIZES(__xstat, "isp", OF_INT, 0, OUT(2, struct stat)),
    BOTH_SIZES(__lxstat, "isp", OF_INT, 0, OUT(2, struct stat)),
    R(statx, "isiip", OF_INT, 0, OUT_BYTES(4, 256)),
    BOTH_SIZES(statfs, "sp", OF_INT, 0, OUT(1, struct statfs)),
    BOTH_SIZES(fstatfs, "ip", OF_INT, 0, OUT(1, struct statfs)),
    BOTH_SIZES(statvfs, "sp", OF_INT, 0, OUT(1, struct statvfs)),
    BOTH_SIZES(fstatvfs, "ip", OF_INT, 0, OUT(1, struct statvfs)),
    R0(access, "si", OF_INT, 0),
    R0(eaccess, "si", OF_INT, 0),
    R0(euidaccess, "si", OF_INT, 0),
    R0(faccessat, "isii", OF_INT, 0),
    R(readlink, "spl", OF_LONG, 0, OUT_RESULT(1, 1)),
    R(readlinkat, "ispl", OF_LONG, 0, OUT_RESULT(2, 1)),
    R(__readlink_chk, "spll", OF_LONG, 0, OUT_RESULT(1, 1)),
    R(getxattr, "sspl", OF_LONG, 0, OUT_RESULT(2, 1)),
    R(lgetxattr, "sspl", OF_LONG, 0, OUT_RESULT(2, 1)),
    R(fgetxattr, "ispl", OF_LONG, 0, OUT_RESULT(2, 1)),
    R(listxattr, "spl", OF_LONG, 0, OUT_RESULT(1, 1)),
    R0(mkdir, "si", OF_INT, 0),
    R0(mkdirat, "isi", OF_INT, 0),
    R0(rmdir, "s", OF_INT, 0),
    R0(unlink, "s", OF_INT, 0),
    R0(unlinkat, "isi", OF_INT, 0),
    R0(remove, "s", OF_INT, 0),
    R0(rename, "ss", OF_INT, 0),
    R0(renameat, "isis", OF_INT, 0),
    R0(renameat2, "isisi", OF_INT, 0),
    R0(link, "ss", OF_INT, 0),
    R0(linkat, "isisi", OF_INT, 0),
    R0(symlink, "ss", OF_INT, 0),
    R0(symlinkat, "sis", OF_INT, 0),
    R0(chmod, "si", OF_INT, 0),
    R0(fchmod, "ii", OF_INT, 0),
    R0(fchmodat, "isii", OF_INT, 0),
    R0(chown, "sii", OF_INT, 0),
    R0(lchown, "sii", OF_INT, 0),
    R0(fchown, "iii", OF_INT, 0),
    R0(fchownat, "isiii", OF_INT, 0),
    R0(truncate, "sl", OF_INT, 0),
    R0(truncate64, "sl", OF_INT, 0),
    R0(ftruncate, "il", OF_INT, 0),
    R0(ftruncate64, "il", OF_INT, 0),
    R0(utime, "sp", OF_INT, 0),
    R0(utimes, "sp", OF_INT, 0),
    R0(futimens, "ip", OF_INT, 0),
    R0(utimensat, "ispi", OF_INT, 0),
    R0(fsync, "i", OF_INT, 0),
    R0(fdatasync, "i", OF_INT, 0),
    R0(sync, "", PLAIN_INT, 0),
    R0(mkfifo, "si", OF_INT, 0),
    R0(mknod, "sil", OF_INT, 0),
    R0(fallocate, "iill", OF_INT, 0),
    R0(fallocate64, "iill", OF_INT, 0),
    R0(posix_fallocate, "ill", OF_ERROR, 0),
    R0(posix_fallocate64, "ill", OF_ERROR, 0),
    R0(flock, "ii", OF_INT, MAY_WAIT),
    R0(lockf, "iil", OF_INT, MAY_WAIT),
    R0(lockf64, "iil", OF_INT, MAY_WAIT),
    R0(chdir, "s", OF_INT, 0),
    R0(fchdir, "i", OF_INT, 0),
    R0(chroot, "s", OF_INT, 0),
    R0(mount, "sssl", OF_INT, 0),
    R0(umount2, "si", OF_INT, 0),
    BOTH_SIZES(sendfile, "iipl", OF_LONG, MAY_WAIT, OUT_BYTES(2, 8)),
    R(copy_file_range, "ipipli", OF_LONG, 0, OUT_BYTES(1, 8), OUT_BYTES(3, 8)),
    R(splice, "ipipli", OF_LONG, MAY_WAIT, OUT_BYTES(1, 8), OUT_BYTES(3, 8)),
    /* descriptors */
    R0(dup, "i", OF_INT, OPENS_ONE | COPIES_FIRST),
    R0(dup2, "ii", OF_INT, OPENS_ONE | COPIES_FIRST),
    R0(dup3, "iii", OF_INT, OPENS_ONE | COPIES_FIRST),
    R(pipe, "p", OF_INT, OPENS_PAIR, OUT_BYTES(0, 8)),
    R(pipe2, "pi", OF_INT, OPENS_PAIR, OUT_BYTES(0, 8)),
    R0(eventfd, "ii", OF_INT, OPENS_ONE),
    R0(memfd_create, "si", OF_INT, OPENS_ONE),
    R0(signalfd, "ipi", OF_INT, OPENS_ONE),
    R0(timerfd_create, "ii", OF_INT, OPENS_ONE),
    R(timerfd_settime, "iipp", OF_INT, 0, OUT(3, struct itimerspec)),
    R(timerfd_gettime, "ip", OF_INT, 0, OUT(1, struct itimerspec)),
    R0(inotify_init, "", OF_INT, OPENS_ONE),
    R0(inotify_init1, "i", OF_INT, OPENS_ONE),
    R0(inotify_add_watch, "isi", OF_INT, 0),
    R0(inotify_rm_watch, "ii", OF_INT, 0),
    R0(epoll_create, "i", OF_INT, OPENS_ONE),
    R0(epoll_create1, "i", OF_INT, OPENS_ONE),
    R0(epoll_ctl, "iiip", OF_INT, 0),
    R(epoll_wait, "ipii", OF_INT, MAY_WAIT, OUT_RESULT(1, sizeof(struct epoll_event))),
    R(epoll_pwait, "ipiip", OF_INT, MAY_WAIT, OUT_RESULT(1, sizeof(struct epoll_event))),
    R(poll, "pli", OF_INT, MAY_WAIT, OUT_ARGUMENT(0, 1, sizeof(struct pollfd))),
    R(__poll_chk, "plil", OF_INT, MAY_WAIT, OUT_ARGUMENT(0, 1, sizeof(struct pollfd))),
    R(ppoll, "plpp", OF_INT, MAY_WAIT, OUT_ARGUMENT(0, 1, sizeof(struct pollfd))),
    R(select, "ipppp", OF_INT, MAY_WAIT, OUT_SET(1), OUT_SET(2), OUT_SET(3)),
    R(pselect, "ippppp", OF_INT, MAY_WAIT, OUT_SET(1), OUT_SET(2), OUT_SET(3)),
    R0(pidfd_open, "ii", OF_INT, OPENS_ONE),
    /* sockets */
    R0(socket, "iii", OF_INT, OPENS_SOCKET),
    R(socketpair, "iiip", OF_INT, OPENS_PAIR | OPENS_SOCKET, OUT_BYTES(3, 8)),
    R(accept, "ipp", OF_INT, OPENS_SOCKET | MAY_WAIT, OUT_LENGTH(1, 2)),
    R(accept4, "ippi", OF_INT, OPENS_SOCKET | MAY_WAIT, OUT_LENGTH(1, 2)),
    RIN(connect, "ipi", OF_INT, MAY_WAIT, OUT_ARGUMENT(1, 2, 1)),
    RIN(bind, "ipi", OF_INT, 0, OUT_ARGUMENT(1, 2, 1)),
    R0(listen, "ii", OF_INT, 0),
    R0(shutdown, "ii", OF_INT, 0),
    R(recv, "ipli", OF_LONG, MAY_WAIT, OUT_RESULT(1, 1)),
    R(__recv_chk, "iplli", OF_LONG, MAY_WAIT, OUT_RESULT(1, 1)),
    R(recvfrom, "iplipp", OF_LONG, MAY_WAIT, OUT_RESULT(1, 1), OUT_LENGTH(4, 5)),
    R(recvmsg, "ipi", OF_LONG, MAY_WAIT, OUT_MESSAGE(1)),
    RIN(send, "ipli", OF_LONG, MAY_WAIT, OUT_ARGUMENT(1, 2, 1)),
    RIN(sendto, "iplipi", OF_LONG, MAY_WAIT, OUT_ARGUMENT(1, 2, 1)),
    RIN(sendmsg, "ipi", OF_LONG, MAY_WAIT, OUT_MESSAGE(1)),
    R(getsockname, "ipp", OF_INT, 0, OUT_LENGTH(1, 2)),
    R(getpeername, "ipp", OF_INT, 0, OUT_LENGTH(1, 2)),
    R(getsockopt, "iiipp", OF_INT, 0, OUT_LENGTH(3, 4)),
    RIN(setsockopt, "iiipi", OF_INT, 0, OUT_ARGUMENT(3, 4, 1)),
    R0(if_nametoindex, "s", PLAIN_ERRNO, 0),
    /* other processes */
    R0(fork, "", OF_INT, 0),
    R0(vfork, "", OF_INT, 0),
    R0(system, "s", PLAIN_ERRNO, MAY_WAIT),
    R0(kill, "ii", OF_INT, 0),
    R0(killpg, "ii", OF_INT, 0),
    R0(tgkill, "iii", OF_INT, 0),
    R(wait, "p", OF_INT, MAY_WAIT, OUT_BYTES(0, 4)),
    R(waitpid, "ipi", OF_INT, MAY_WAIT, OUT_BYTES(1, 4)),
    R(wait4, "ipip", OF_INT, MAY_WAIT, OUT_BYTES(1, 4), OUT(3, struct rusage)),
    R(waitid, "iipi", OF_INT, MAY_WAIT, OUT_BYTES(2, 128)),
    R(posix_spawn, "psppp", OF_ERROR, 0, OUT_BYTES(0, 4)),
    R(posix_spawnp, "psppp", OF_ERROR, 0, OUT_BYTES(0, 4)),
    /* what has no form that could be repeated */
    R0(popen, "ss", PLAIN_LONG, ONLY_NAMED),
    R0(setmntent, "ss", PLAIN_LONG, ONLY_NAMED),
    R0(getutent, "", PLAIN_LONG, ONLY_NAMED),
    R0(getutxent, "", PLAIN_LONG, ONLY_NAMED),
    R0(fopen, "ss", PLAIN_LONG, ONLY_NAMED),
    R0(fopen64, "ss", PLAIN_LONG, ONLY_NAMED),
    R0(opendir, "s", PLAIN_LONG, ONLY_NAMED),
    R0(shm_open, "sii", PLAIN_LONG, ONLY_NAMED),
    R0(mq_open, "sii", PLAIN_LONG, ONLY_NAMED),
    R0(shmget, "ili", PLAIN_LONG, ONLY_NAMED),
    R0(semget, "iii", PLAIN_LONG, ONLY_NAMED),
    R0(msgget, "ii", PLAIN_LONG, ONLY_NAMED),
    R0(getpwnam, "s", PLAIN_LONG, ONLY_NAMED),
    R0(getpwuid, "i", PLAIN_LONG, ONLY_NAMED),
    R0(gethostbyname, "s", PLAIN_LONG, ONLY_NAMED),
    R0(openlog, "sii", PLAIN_LONG, ONLY_NAMED),
    /* these have forms of their own: libc/forms.c */
    R0(getifaddrs, "p", OF_INT, 0),
    R0(getaddrinfo, "sspp", PLAIN_INT, MAY_WAIT),
    R0(getnameinfo, "plplpl", PLAIN_INT, MAY_WAIT),
    R0(ioctl, "ilp", OF_INT, 0),
    R0(fcntl, "iil", OF_INT, 0),
    R0(getcwd, "pl", PLAIN_LONG, 0),
};
const int libc_row_count = sizeof libc_rows / sizeof *libc_rows;

static int
compare_rows(const void *name, const void *row)
{
    return strcmp(name, (*(LibcRow *const *)row)->name);
}

static int
compare_two(const void *one, const void *other)
{
    return strcmp((*(LibcRow *const *)one)->name, (*(LibcRow *const *)other)->name);
}

LibcRow *
libc_row_named(const char *name)
{
    static LibcRow *sorted[sizeof libc_rows / sizeof *libc_rows];
    if (sorted[0] == NULL) {
        for (int i = 0; i < libc_row_count; i++)
            sorted[i] = &libc_rows[i];
        qsort(sorted, (size_t)libc_row_count, sizeof *sorted, compare_two);
    }
    LibcRow **found = bsearch(name, sorted, (size_t)libc_row_count, sizeof *sorted, compare_rows);
    return found ? *found : NULL;
}

/* ---- system calls by number ---- */

static const struct {
    long number;
    const char *name;
} numbers[] = {
#define N(name) {SYS_##name, #name},
    N(getrandom) N(clock_gettime) N(clock_getres) N(gettimeofday) N(times) N(getrusage) N(clock_nanosleep) N(
        nanosleep) N(getpid) N(getppid) N(gettid) N(getpgid) N(getsid) N(setsid) N(setpgid) N(getuid) N(geteuid)
        N(getgid) N(getegid) N(getresuid) N(getresgid) N(getgroups) N(setuid) N(setgid) N(setresuid) N(setresgid) N(
            uname) N(umask) N(sysinfo) N(getcpu) N(sched_getaffinity) N(sched_setaffinity) N(sched_getscheduler)
            N(sched_setscheduler) N(sched_getparam) N(sched_setparam) N(sched_rr_get_interval) N(getpriority) N(
                setpriority) N(ioprio_get) N(ioprio_set) N(openat) N(read) N(readv) N(write) N(writev) N(lseek) N(fstat)
                N(statfs) N(fstatfs) N(statx) N(readlinkat) N(getxattr) N(lgetxattr) N(fgetxattr) N(mkdirat) N(unlinkat)
                    N(renameat2) N(linkat) N(symlinkat) N(fchmod) N(fchownat) N(fchown) N(ftruncate) N(truncate)
                        N(utimensat) N(fsync) N(fdatasync) N(sync) N(fallocate) N(flock) N(chdir) N(fchdir)
                            N(chroot) N(mount) N(umount2) N(copy_file_range) N(splice) N(sendfile) N(dup) N(dup3)
                                N(pipe2) N(memfd_create) N(timerfd_create) N(timerfd_settime) N(timerfd_gettime)
                                    N(inotify_init1) N(inotify_add_watch) N(inotify_rm_watch) N(epoll_create1)
                                        N(epoll_ctl) N(epoll_pwait) N(ppoll) N(socket) N(socketpair) N(accept)
                                            N(accept4) N(connect) N(bind) N(listen) N(shutdown) N(recvfrom) N(recvmsg)
                                                N(sendto) N(sendmsg) N(getsockname) N(getpeername) N(getsockopt)
                                                    N(setsockopt) N(kill) N(tgkill) N(wait4) N(waitid)
#ifdef SYS_open
                                                        N(open) N(creat) N(stat) N(lstat) N(access) N(readlink) N(mkdir)
                                                            N(rmdir) N(unlink) N(rename) N(link) N(symlink) N(chmod)
                                                                N(chown) N(lchown) N(dup2) N(pipe) N(inotify_init)
                                                                    N(epoll_create) N(epoll_wait) N(poll) N(select)
                                                                        N(getpgrp) N(time) N(fork) N(vfork) N(utime)
                                                                            N(utimes)
#endif
#undef N
                                                                                {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_eventfd2, "eventfd"},
    {SYS_prlimit64, "prlimit64"},
    {SYS_ioctl, "ioctl"},
    {SYS_fcntl, "fcntl"},
    {SYS_getitimer, "getitimer"},
    {SYS_setitimer, "setitimer"},
#ifdef SYS_alarm
    {SYS_alarm, "alarm"},
#endif
#ifdef SYS_newfstatat
    {SYS_newfstatat, "fstatat"},
#endif
#ifdef SYS_pidfd_open
    {SYS_pidfd_open, "pidfd_open"},
#endif
};

LibcRow *
libc_row_numbered(long number)
{
    enum { MOST = 600 };
    static LibcRow *found[MOST];
    static bool filled;
    for (size_t i = 0; !filled && i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].number < MOST)
            found[numbers[i].number] = libc_row_named(numbers[i].name);
    filled = true;
    return number >= 0 && number < MOST ? found[number] : NULL;
}

bool
libc_number_is_local(long number)
{
    static const long local[] = {
        SYS_futex,        SYS_mmap,          SYS_munmap,        SYS_mprotect,        SYS_madvise,
        SYS_mremap,       SYS_mincore,       SYS_brk,           SYS_rt_sigaction,    SYS_rt_sigprocmask,
        SYS_rt_sigreturn, SYS_sigaltstack,   SYS_sched_yield,   SYS_set_robust_list, SYS_set_tid_address,
        SYS_close,        SYS_exit,          SYS_exit_group,    SYS_membarrier,      SYS_prctl,
        SYS_mbind,        SYS_get_mempolicy, SYS_set_mempolicy, SYS_clone,           SYS_mlock,
        SYS_munlock,      SYS_capget,
#ifdef SYS_arch_prctl
        SYS_arch_prctl,
#endif
#ifdef SYS_rseq
        SYS_rseq,
#endif
#ifdef SYS_clone3
        SYS_clone3,
#endif
#ifdef SYS_close_range
        SYS_close_range,
#endif
    };
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (local[i] == number)
            return true;
    return false;
}
