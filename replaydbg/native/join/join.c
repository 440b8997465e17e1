/* Loaded by LD_PRELOAD into each program that a process of a group starts (log/started.c), and linked to nothing but the
 * C library. If the program is a Python, it becomes one that is recorded: this process starts the same interpreter with
 * our script (record/joiner.py), before it has begun. Every other program goes on, and its children come here, too. */
#include "log/page.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD"
#define PACKAGE "/native/_join."
#define SCRIPT "/record/joiner.py"
#define OWN_WORDS 7 /* of the command line that runs it */

extern int Py_BytesMain(int argc, char **argv) __attribute__((weak));

static const char *
value_of(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=' ? entry + n + 1 : NULL;
}

static char *
own_variable(void)
{
    for (char **at = environ; at && *at; at++)
        if (value_of(*at, GROUP_VARIABLE) && strlen(*at) > AT_DIRECTORY)
            return *at;
    return NULL;
}

static unsigned
number_at(const char *text)
{
    unsigned number = 0;
    for (int i = 0; i < DIGITS; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        number = number * 10 + (unsigned)(text[i] - '0');
    }
    return number;
}

/* A program that embeds Python has the function, too, and takes other options. */
static bool
is_python(char *file, size_t size)
{
    ssize_t n = Py_BytesMain ? readlink("/proc/self/exe", file, size - 1) : -1;
    if (n <= 0)
        return false;
    file[n] = 0;
    const char *name = strrchr(file, '/');
    return name && strstr(name, "python") != NULL;
}

static GroupHead *
map_page(const char *directory)
{
    char path[4200];
    struct stat st;
    size_t n = strlen(directory);
    if (n > sizeof path - 8)
        return NULL;
    memcpy(path, directory, n);
    memcpy(path + n, "/page", 6);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *at = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(GroupHead))
        at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return NULL;
    GroupHead *page = at;
    bool is_whole = memcmp(page->magic, "RDBGGRP", 8) == 0 &&
                    (uint64_t)st.st_size >= sizeof *page + page->limit * (uint64_t)sizeof(ProcessRow);
    return is_whole ? page : NULL;
}

static ProcessRow *
row_of(GroupHead *page, unsigned number)
{
    return number && number <= page->limit ? (ProcessRow *)(page + 1) + (number - 1) : NULL;
}

/* The row that was prepared for this process, if no other one has taken it; or the one that it had as another program,
 * as `env` or a shell that replaced itself; or, for a Python, a new one. 0: none. */
static unsigned
take_row(GroupHead *page, unsigned parent, unsigned prepared, bool python)
{
    ProcessRow *row = row_of(page, prepared), *before = row_of(page, parent);
    int32_t nobody = 0, own = getpid();
    if (row && (__atomic_compare_exchange_n(&row->pid, &nobody, own, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
                nobody == own))
        return prepared;
    bool had = before && before->pid == own;
    if (had && before->why_not != IS_RECORDED)
        return parent;
    if (!python)
        return 0;
    unsigned number = __atomic_add_fetch(&page->count, 1, __ATOMIC_SEQ_CST);
    if ((row = row_of(page, number)) == NULL)
        return 0;
    row->parent = row_of(page, prepared) ? prepared : parent;
    row->how = had ? HOW_REPLACED : parent == 0 ? HOW_JOINED : HOW_STARTED;
    row->why_not = IS_A_PROGRAM;
    __atomic_store_n(&row->pid, own, __ATOMIC_SEQ_CST);
    return number;
}

/* ---- the start ---- */

/* Our own entry in LD_PRELOAD: where it begins and ends; NULL: it is not there. */
static const char *
own_entry(const char *preload, size_t *length)
{
    const char *at = strstr(preload, PACKAGE), *start = at;
    while (start && start > preload && start[-1] != ':' && start[-1] != ' ')
        start--;
    *length = at ? (size_t)(at - start) + strcspn(at, ": ") : 0;
    return start;
}

/* The environment without what is ours, and our library. NULL: LD_PRELOAD does not have it. */
static char *
clean(char **env)
{
    char *library = NULL;
    for (char **at = environ; *at; at++) {
        const char *preload = value_of(*at, PRELOAD);
        size_t n = 0;
        const char *own = preload ? own_entry(preload, &n) : NULL;
        if (own == NULL) {
            if (!value_of(*at, GROUP_VARIABLE))
                *env++ = *at;
            continue;
        }
        library = strndup(own, n);
        if (own == preload && own[n] == 0)
            continue;                                  /* the program has none */
        size_t before = (size_t)(own - *at), skip = n; /* and the colon on one side */
        if (own > preload)
            before--;
        else
            skip++;
        char *rest = malloc(strlen(*at) + 1);
        if (rest == NULL)
            return NULL;
        memcpy(rest, *at, before);
        strcpy(rest + before, own + skip);
        *env++ = rest;
    }
    *env = NULL;
    return library;
}

static bool
has_home(void)
{
    const char *home = getenv("PYTHONHOME"), *directory = getenv("PYTHONPLATLIBDIR");
    return (home && *home) || (directory && *directory);
}

/* Comes back only if that fails. */
static void
start_joiner(const char *file, int argc, char **argv, char *own)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **env = calloc(count + 1, sizeof *env), **words = calloc((size_t)argc + OWN_WORDS + 1, sizeof *words);
    char *library = env && words ? clean(env) : NULL,
         *script = library ? malloc(strlen(library) + sizeof SCRIPT) : NULL;
    if (script) {
        strcpy(script, library);
        strcpy(strstr(script, PACKAGE), SCRIPT);
        own[AT_ROW - 1] = 0;
        /* isolated, so that nothing of the program's runs before it; but where the interpreter's library is elsewhere,
         * it would not be found then */
        char *start[OWN_WORDS] = {argv[0], has_home() ? "-s" : "-I", "-S", script, own + AT_DIRECTORY, own + AT_PARENT,
                                  library};
        memcpy(words, start, sizeof start);
        memcpy(words + OWN_WORDS, argv + 1, (size_t)argc * sizeof *argv); /* and NULL */
        execve(file, words, env);
        own[AT_ROW - 1] = ':';
    }
    free(script);
    free(library);
    free(words);
    free(env);
}

__attribute__((constructor)) static void
begin(int argc, char **argv)
{
    char file[4200], *own = own_variable();
    int saved = errno;
    if (own == NULL || argc < 1)
        return;
    unsigned parent = number_at(own + AT_PARENT), prepared = number_at(own + AT_ROW);
    bool is_plain = own[AT_PLAIN] == '1', python = !is_plain && is_python(file, sizeof file);
    own[AT_PLAIN] = '0';
    if (!python && prepared == 0)
        return;
    GroupHead *page = map_page(own + AT_DIRECTORY);
    unsigned number = page ? take_row(page, parent, prepared, python) : 0;
    if (number) {
        group_put_number(own + AT_PARENT, number);
        group_put_number(own + AT_ROW, 0);
    }
    if (number && python) {
        ProcessRow *row = row_of(page, number);
        if (row->how == HOW_STARTED)
            row->how = HOW_PYTHON;
        row->why_not = HAS_NOT_BEGUN;
        start_joiner(file, argc, argv, own);
    }
    if (page)
        munmap(page, sizeof *page + page->limit * sizeof(ProcessRow));
    errno = saved;
}
