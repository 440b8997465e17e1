/* Ids and hashes of objects, the same in both modes.
 *
 *   identity.c   id() and hashes
 *   types.c      the types that are patched, and what was hashed before
 *   reprs.c      addresses in reprs
 *   addresses.c  ids that ctypes is given as addresses
 *   since.c      since when an object is the one at its address
 */
#ifndef REPLAYDBG_IDENTITY_H
#define REPLAYDBG_IDENTITY_H
#include "base/core.h"

/* identity.c */
/* What is asked for inside a crossing takes no serial of the program's; what the tool itself does asks for nothing. */
int identity_install(bool real_ids);                /* at depth 0, before the program begins */
void identity_share(void);                          /* from now on several interpreters may ask at once */
uint64_t identity_serials(void);                    /* the next one */
void identity_reach(uint64_t serial);               /* the next one is that, if it was less */
#define MOST_WATCHED 256                            /* watched objects, numbered from 0 */
void identity_watch_none(void);                     /* forgets them */
void identity_watch_end(int number, const void *o); /* notice from now on when the object there dies */
bool identity_has_ended(int number);                /* whether it has died since the last call */

/* addresses.c */
/* what stands for this function of the interpreter's, found by name; NULL: itself */
void *addresses_function(const char *name);
int addresses_module_loaded(PyObject *module, const char *name);

/* types.c */
int identity_module_loaded(PyObject *module, const char *name);

/* since.c */
uint32_t heap_since(uint64_t block); /* where the memory of an object begins */
void since_begin(uint64_t number);   /* of the next snapshot */

/* identity.c */
uintptr_t block_of_object(PyObject *o); /* identity.c */

#endif
