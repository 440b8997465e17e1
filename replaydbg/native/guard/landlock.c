/* Landlock rules of a replay: a second lock on files, where the kernel has it. Nothing is written, made, removed or
 * executed, whatever the system call; no TCP port is bound or connected; no signal and no abstract socket leaves the
 * process; and no other process is looked into (the kernel refuses ptrace, and /proc/PID/mem with it, across the border
 * of such rules).
 *
 * Reading is allowed below each directory of the root but /dev, where a few harmless devices are left: opening others
 * can act (a watchdog) or take what somebody types. It is not narrowed further: extension modules and the files that C
 * libraries read lie anywhere, and a replay has to find them where the recorded program did. */
#include "guard/inside.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The kernel's interface, which headers of the C library may be too old for. The numbers are the same on every
 * architecture. */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, GET_VERSION = 1, PATH_BENEATH = 1 };
enum { READ_FILE = 1 << 2, READ_DIR = 1 << 3 };

typedef struct {
    uint64_t files, network, scoped;
} Ruleset;

typedef struct __attribute__((packed)) {
    uint64_t allowed;
    int32_t parent;
} PathRule;

/* Rights that each version of the interface knows; asking for more is an error. */
static const struct {
    size_t size;
    Ruleset all;
} versions[] = {
    {8, {0x1fff, 0, 0}},  {8, {0x3fff, 0, 0}},  {8, {0x7fff, 0, 0}},
    {16, {0x7fff, 3, 0}}, {16, {0xffff, 3, 0}}, {24, {0xffff, 3, 3}},
};
enum { VERSIONS = sizeof versions / sizeof *versions };

static int
allow(int ruleset, const char *path, uint64_t rights)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return 0; /* it is not there, or this user may not look at it anyway */
    PathRule rule = {rights, fd};
    long rc = syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0);
    if (rc < 0 && errno == EINVAL) { /* a file has no right to be listed */
        rule.allowed &= ~(uint64_t)READ_DIR;
        rc = syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0);
    }
    close(fd);
    return rc < 0 ? -1 : 0;
}

static int
allow_reading(int ruleset)
{
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
    char path[300];
    DIR *root = opendir("/");
    struct dirent *entry;
    int rc = root ? allow(ruleset, "/", READ_DIR) : allow(ruleset, "/", READ_FILE | READ_DIR);
    while (root && rc == 0 && (entry = readdir(root)) != NULL) {
        if (entry->d_name[0] == '.' && (entry->d_name[1] == 0 || entry->d_name[1] == '.'))
            continue;
        snprintf(path, sizeof path, "/%s", entry->d_name);
        if (strcmp(path, "/dev") != 0)
            rc = allow(ruleset, path, READ_FILE | READ_DIR);
    }
    if (root)
        closedir(root);
    for (size_t i = 0; rc == 0 && i < sizeof devices / sizeof *devices; i++)
        rc = allow(ruleset, devices[i], READ_FILE);
    return rc;
}

bool
landlock_restrict(void)
{
    long version = syscall(CREATE_RULESET, NULL, 0, GET_VERSION);
    if (version < 1)
        return false;
    size_t known = (size_t)(version < VERSIONS ? version : VERSIONS) - 1;
    int ruleset = (int)syscall(CREATE_RULESET, &versions[known].all, versions[known].size, 0);
    if (ruleset < 0)
        return false;
    bool done = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && allow_reading(ruleset) == 0 &&
                syscall(RESTRICT_SELF, ruleset, 0) == 0;
    close(ruleset);
    return done;
}
