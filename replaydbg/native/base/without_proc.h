/* What /proc shows, by other means: for containers and chroots in which it is not mounted. Each of these is slower or less exact, and is
 * used only where /proc has no answer. */
#ifndef REPLAYDBG_WITHOUT_PROC_H
#define REPLAYDBG_WITHOUT_PROC_H
#include "base/core.h"

/* For the launcher: methods of the module. */
PyObject *without_proc_descriptors(PyObject *module, PyObject *unused);
PyObject *without_proc_environment(PyObject *module, PyObject *unused);

/* In bytes: the address space of this process, which must have no other thread. */
uint64_t without_proc_address_space(void);
/* In bytes: about the most address space that this process had, which may have threads; 0: unknown. */
uint64_t without_proc_peak(void);
/* Whether a descriptor leads to a file that is made to be shared as memory: of memfd_create() or shm_open(). */
bool without_proc_is_memory(int fd);

#endif
