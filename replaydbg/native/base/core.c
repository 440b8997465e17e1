/* The state of the core: one extension, one program. */
#include "base/core.h"

Core core = {.mode = OBSERVE, .report_fd = -1, .null_fd = -1, .socket_fd = -1};
Engine engine = {.fd = -1};
