/* Since when an object is the one that lies at its address: the number of the snapshot before which its memory was freed last, or put to a new
 * use. Kept only from the first snapshot of a run on; before that, and of whatever was never freed, it is 0. */
#include "heap.h"

uint32_t
heap_since(uint64_t address)
{
    return 0;
}
