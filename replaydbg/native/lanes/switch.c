/* The C stacks of lanes: where they come from, and the change from one to another. */
#include "base/core.h"
#include "lanes/inside.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define LEAST_STACK (256u << 10)
#define DEFAULT_STACK (8u << 20)
#define KEPT_STACKS 16

static struct {
    void *at[KEPT_STACKS];
    int count;
} kept;

bool
stack_take(Lane *lane, size_t size)
{
    size = size ? (size < LEAST_STACK ? LEAST_STACK : size + 4095) & ~(size_t)4095 : DEFAULT_STACK;
    lane->stack_size = size;
    if (size == DEFAULT_STACK && kept.count > 0) {
        lane->stack = kept.at[--kept.count];
#ifdef __SANITIZE_ADDRESS__
        __asan_unpoison_memory_region(lane->stack, size); /* the frames of the lane that ended there were never left */
#endif
        return true;
    }
    void *stack =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return false;
    mprotect(stack, 4096, PROT_NONE); /* who runs over it is stopped there */
    lane->stack = stack;
    return true;
}

void
stack_give_back(Lane *lane)
{
    if (lane->stack == NULL)
        return;
    if (lane->stack_size == DEFAULT_STACK && kept.count < KEPT_STACKS)
        kept.at[kept.count++] = lane->stack;
    else
        munmap(lane->stack, lane->stack_size);
    lane->stack = NULL;
}

/* ---- signal masks: each lane has one, as each thread does ----
 * The system has one, of the thread that all lanes run on. To change it at each switch costs two calls of the system, and hardly any
 * program has masks that differ: so it begins when a lane gives up with another mask than the program began with. */

static sigset_t first_mask;
static bool differs_now, masks_differ;

static void
look_at_mask(void)
{
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    differs_now = memcmp(&now, &first_mask, sizeof now) != 0;
}

/* In a replay SIGSYS stays unblocked: with it blocked, a call that the fence stops would end the process without a
 * word, and exit_group() is one, see refused.c. */
static const sigset_t *
without_sigsys(int how, const sigset_t *set, sigset_t *other)
{
    if (set == NULL || core.mode != REPLAY || how == SIG_UNBLOCK)
        return set;
    *other = *set;
    sigdelset(other, SIGSYS);
    return other;
}

int
our_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    sigset_t other;
    int rc = pthread_sigmask(how, without_sigsys(how, set, &other), before);
    if (set && on_lanes && lanes.is_on)
        look_at_mask();
    return rc;
}

int
our_sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    sigset_t other;
    int rc = sigprocmask(how, without_sigsys(how, set, &other), before);
    if (set && on_lanes && lanes.is_on)
        look_at_mask();
    return rc;
}

void
stacks_begin(void)
{
    pthread_sigmask(SIG_SETMASK, NULL, &first_mask);
    lanes.first.mask = first_mask;
}

static void
change_mask(Lane *from, Lane *next)
{
    masks_differ |= differs_now;
    if (masks_differ)
        pthread_sigmask(SIG_SETMASK, &next->mask, &from->mask);
}

/* ---- the change ---- */

#ifdef __SANITIZE_ADDRESS__
static void
announce_switch(Lane *from, Lane *to)
{
    __sanitizer_start_switch_fiber(from->ended ? NULL : &from->fake_stack, to->stack, to->stack_size);
}

void
stack_arrived(void)
{
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(lanes.running->fake_stack, &bottom, &size);
    if (lanes.first.stack == NULL) { /* the first switch of all is away from the first lane */
        lanes.first.stack = (void *)bottom;
        lanes.first.stack_size = size;
    }
}
#else
#define announce_switch(from, to) ((void)0)
void
stack_arrived(void)
{
}
#endif

#ifdef CHANGES_STACKS
/* What a function must leave as it found it: six registers, and how floating point rounds. The rest the caller has
 * saved. */
__attribute__((naked, noinline)) static void
change_stacks(void **left, void *to)
{
    __asm__("pushq %rbp\n\t"
            "pushq %rbx\n\t"
            "pushq %r12\n\t"
            "pushq %r13\n\t"
            "pushq %r14\n\t"
            "pushq %r15\n\t"
            "subq $8, %rsp\n\t"
            "stmxcsr (%rsp)\n\t"
            "fnstcw 4(%rsp)\n\t"
            "movq %rsp, (%rdi)\n\t"
            "movq %rsi, %rsp\n\t"
            "ldmxcsr (%rsp)\n\t"
            "fldcw 4(%rsp)\n\t"
            "addq $8, %rsp\n\t"
            "popq %r15\n\t"
            "popq %r14\n\t"
            "popq %r13\n\t"
            "popq %r12\n\t"
            "popq %rbx\n\t"
            "popq %rbp\n\t"
            "ret");
}

void
stack_prepare(Lane *lane, void (*begin)(void))
{
    void **top = (void **)((char *)lane->stack + lane->stack_size);
    *--top = NULL; /* nobody has called it: here unwinding ends, and the stack is aligned as for any function */
    *--top = (void *)(uintptr_t)begin;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    uint32_t *rounding = (uint32_t *)--top;
    uint16_t x87;
    __asm__("fnstcw %0" : "=m"(x87));
    rounding[0] = __builtin_ia32_stmxcsr();
    rounding[1] = x87;
    lane->top = top;
    lane->mask = lanes.running->mask;
    if (masks_differ || differs_now)
        pthread_sigmask(SIG_SETMASK, NULL, &lane->mask);
}

void
stack_change(Lane *from, Lane *next)
{
    change_mask(from, next);
    announce_switch(from, next);
    change_stacks(&from->top, next->top);
}
#else
void
stack_prepare(Lane *lane, void (*begin)(void))
{
    getcontext(&lane->context);
    lane->context.uc_stack.ss_sp = lane->stack;
    lane->context.uc_stack.ss_size = lane->stack_size;
    makecontext(&lane->context, begin, 0);
    lane->mask = lane->context.uc_sigmask;
}

void
stack_change(Lane *from, Lane *next)
{
    change_mask(from, next);
    announce_switch(from, next);
    swapcontext(&from->context, &next->context);
}
#endif
