/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_IDENTITY_INSIDE_H
#define REPLAYDBG_IDENTITY_INSIDE_H
#include "base/core.h"
#include "identity/identity.h"

/* identity.c */
uintptr_t identity_address(PyObject *o); /* what id() says */
Py_hash_t identity_hash(PyObject *o);
void *identity_memory(uintptr_t address); /* the real address, of a living object; else NULL */
/* what id() said of the object that begins there; 0: it was not asked for */
uintptr_t identity_known_address(const void *memory);
bool identity_is_made_up(uintptr_t address); /* what id() gave for some object, living or dead, or little more */
bool identity_is_off(void);                  /* id() is left alone */
void identity_not_covered(const char *what, const char *of); /* a note */

/* instructions.c */
int instructions_install(void);

/* types.c */
extern hashfunc hash_in_python;
extern reprfunc repr_in_python;
int identity_types_install(void);

/* identity.c */
void identity_patch_hash(PyTypeObject *type);
void identity_leave_hash(PyTypeObject *type);
/* of an extension module: its own hash function may fall back to the address */
void identity_watch_hash(PyTypeObject *type);

/* reprs.c */
void identity_patch_repr(PyTypeObject *type);

/* since.c */
extern bool since_is_kept;
void since_freed(uintptr_t block);

/* identity.c */
/* identity.c: of types that keep dead objects, too, it is seen when one dies */
void identity_watch_reused(void);

#endif
