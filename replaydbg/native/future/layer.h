/* Files of a future: a layer over what the recording has of them. Nothing of it is on a disk.
 *
 *   names.c       which names there are, and what is behind them
 *   nodes.c       contents, in memory files, and the descriptors that lead to them
 *   load.c        what the launcher knows of them at the moment
 *   layer.c       which calls are about files, and their outcomes
 *   opens.c       calls that open a file, and what is done with descriptors
 *   renames.c     calls that make, move and remove names
 *   statuses.c    calls that ask
 *   listings.c    what is in a directory
 *   databases.c   files of SQLite
 *
 * By the same table goes what it does with sockets: see loopback.h.
 */
#ifndef REPLAYDBG_FUTURE_LAYER_H
#define REPLAYDBG_FUTURE_LAYER_H
#include "future/inside.h"
#include <sys/stat.h>

/* ---- names.c ---- */
enum { STATUS_FIELDS = 13 };
enum { AT_MODE, AT_INODE, AT_DEVICE, AT_LINKS, AT_USER, AT_GROUP, AT_SIZE, AT_ACCESS, AT_CHANGE, AT_STATUS, AT_BLOCK };
typedef enum {
    IS_UNKNOWN,
    IS_ABSENT,
    IS_FILE,
    IS_MADE,      /* a directory that the program has made: all of its names are known */
    IS_DIRECTORY, /* one that was there: of its names, only those that the recording shows are known */
    IS_LINK,
    IS_OTHER /* something is there */
} NameKind;
typedef struct {
    char *path; /* absolute */
    NameKind kind;
    bool is_touched;     /* the program has made, changed or removed it: what was told of it before is outdated */
    bool has_status;     /* as the recorded run was told */
    int32_t node;        /* of a file: what is in it; -1: nobody has asked yet */
    uint32_t mode;       /* of a directory that was made: its permissions */
    char *target;        /* of a link */
    const char *listing; /* of a directory: names, each with a zero behind it; NULL: not known */
    size_t listing_size;
    int64_t status[STATUS_FIELDS];
} Name;
typedef struct { /* an argument of a call */
    PyObject *object;
    char path[LONGEST_NAME];
    Name *name; /* NULL: none that is known by itself */
    NameKind kind;
} Where;

Name *name_find(const char *path);
Name *name_of(const char *path); /* makes one that is unknown if there is none */
NameKind name_kind(const char *path, Name **name);
Name *name_at(uint32_t index); /* NULL: there are no more */
void name_touch(Name *name, NameKind kind, int32_t node);
bool name_is_touched(const char *path); /* or nothing is there because of what the program did */
const char *name_child(const char *path, const char *directory); /* its own name in it; NULL: it is not in it */
bool name_is_listed(const Name *directory, const char *child);
void name_parent(char *to, const char *path);
const char *names_directory(void); /* the working directory */
void names_go(const char *directory);
/* false: it is no path, or one that the layer cannot follow */
bool name_where(PyObject *object, PyObject *directory_fd, bool follows, Where *where);
/* whether names can be made in the directory of one: 0 if so, an errno; -1: not known */
int name_parent_error(const char *path);

/* ---- nodes.c ---- */
typedef struct {
    int fd;           /* of the memory file, while somebody has it open or had it; -1: never */
    uint8_t *content; /* before */
    size_t size;
    bool is_known; /* what is in it; otherwise only its size is */
    uint32_t mode;
    int links;
    int32_t holder; /* which description the offset of the memory file is of; -1: of none */
    ino_t memory;
    uint64_t inode, device, accessed, changed;
} Node;
typedef struct {
    int32_t node; /* -1: a directory */
    char *path;   /* of a directory */
    int flags;
    off_t offset; /* while another one holds the memory file */
    ino_t memory;
} Description;

int32_t node_new(uint32_t mode, bool is_known);
Node *node_indexed(int32_t index);
int32_t node_of(Name *name); /* of a file: made of what the recording has, if need be */
off_t node_size(const Node *node);
bool node_begin(Node *node); /* makes its memory file, if there is none yet */
bool node_resize(Node *node, off_t size);
bool node_write(Node *node, const uint8_t *data, size_t n, uint64_t offset); /* before it is open */
int node_opened(int32_t node, int flags, off_t offset, int at); /* `at`: the number, or -1: any; -1: errno */
int directory_opened(const char *path, int flags, int at);
Description *fd_description(int fd); /* NULL: it leads to nothing of the layer */
void fd_copied(int fd, int copy);
void fd_take(Description *description, bool writes); /* the memory file has its offset from now on */
mode_t usual_mask(void);                             /* that of the process: which permissions new files do not get */
uint64_t layer_now(void);                            /* ns since the epoch */

/* ---- layer.c ---- */
typedef enum { NOT_HERE, IS_ANSWERED, IS_PERFORMED } Taken;
typedef Taken (*LayerCall)(Crossing *c);
PyObject *argument_of(const Crossing *c, Py_ssize_t at, const char *name); /* NULL: not given */
bool argument_is_false(const Crossing *c, const char *name);
long number_of(PyObject *o, long otherwise);
Taken answered(PyObject *result); /* steals it; NULL: the exception that is set */
Taken fails_with(int error, PyObject *path, PyObject *other);

/* ---- opens.c ---- */
Taken call_open(Crossing *c);
Taken call_file_init(Crossing *c);
Taken call_uses(Crossing *c);
Taken call_transfers(Crossing *c);
Taken call_sync(Crossing *c);

/* ---- renames.c ---- */
Taken call_mkdir(Crossing *c);
Taken call_rmdir(Crossing *c);
Taken call_unlink(Crossing *c);
Taken call_rename(Crossing *c);
Taken call_link(Crossing *c);
Taken call_symlink(Crossing *c);
Taken call_truncate(Crossing *c);
Taken call_chmod(Crossing *c);
Taken call_utime(Crossing *c);
Taken call_chdir(Crossing *c);

/* ---- statuses.c ---- */
Taken call_stat(Crossing *c);
Taken call_lstat(Crossing *c);
Taken call_fstat(Crossing *c);
Taken call_access(Crossing *c);
Taken call_readlink(Crossing *c);
Taken call_getcwd(Crossing *c);
Taken call_listxattr(Crossing *c);
Taken call_entry(Crossing *c);

/* ---- listings.c ---- */
Taken call_listdir(Crossing *c);
Taken call_scandir(Crossing *c);
Taken call_scandir_next(Crossing *c);
const char *entry_path(PyObject *entry); /* absolute; NULL: not known */

/* ---- socket_gates.c ---- */
Taken call_socket(Crossing *c);
Taken call_bind(Crossing *c);
Taken call_connect(Crossing *c);
Taken call_listens(Crossing *c);
Taken call_moves(Crossing *c);
Taken call_getaddrinfo(Crossing *c);
void sockets_performed(const Crossing *c); /* a call was made */
Taken call_kill(Crossing *c);              /* family.c */

#endif
