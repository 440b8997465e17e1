/* C code that could not be recorded. Where Python has something that is used in the same way, that takes its place;
 * where it waits for the outside unseen and nothing can take its place, the recording ends before it begins, with a
 * sentence. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "gates/gates.h"
#include "log/log.h"

/* uvloop is asyncio's loop on a library of C, where it waits, reads and writes unseen. Its package derives its own
 * class from the one in its C module: when that is asyncio's, all of the package goes on as before. Its policy knows no
 * child watcher, which asyncio's loop asks for. */
static const char uvloop_source[] =
    "import asyncio as _asyncio\n"
    "\n"
    "class Loop(_asyncio.SelectorEventLoop):\n"
    "    async def _make_subprocess_transport(self, *args, **kwargs):\n"
    "        policy = _asyncio.get_event_loop_policy()\n"
    "        if type(policy).get_child_watcher is _asyncio.AbstractEventLoopPolicy.get_child_watcher:\n"
    "            if 'get_child_watcher' not in vars(policy):\n"
    "                watcher = _asyncio.DefaultEventLoopPolicy().get_child_watcher()\n"
    "                policy.get_child_watcher = lambda: watcher\n"
    "        return await super()._make_subprocess_transport(*args, **kwargs)\n";

static int
replace_uvloop(PyObject *module)
{
    PyObject *space = PyDict_New(), *code = Py_CompileString(uvloop_source, "<replaydbg uvloop>", Py_file_input);
    PyObject *name = PyUnicode_FromString("uvloop.loop"), *done = NULL, *loop = NULL;
    if (space && code && name && PyDict_SetItemString(space, "__name__", name) == 0 &&
        PyDict_SetItemString(space, "__builtins__", PyThreadState_Get()->interp->builtins) == 0)
        done = PyEval_EvalCode(code, space, space);
    if (done && (loop = PyDict_GetItemString(space, "Loop")) && PyModule_AddObjectRef(module, "Loop", loop) == 0)
        note("replaced", "uvloop: replaced by asyncio's own event loop");
    Py_XDECREF(done);
    Py_XDECREF(name);
    Py_XDECREF(code);
    Py_XDECREF(space);
    return PyErr_Occurred() ? -1 : 0;
}

static const struct {
    const char *module, *sentence;
} refused[] = {
    {"gevent.libev.corecext", "gevent, whose event loop waits in C"},
    {"gevent._libuv._corecffi", "gevent, whose event loop waits in C"},
    {"grpc._cython.cygrpc", "gRPC, which has threads and a network of its own"},
};

static void
refuse(const char *name)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (strcmp(name, refused[i].module) != 0)
            continue;
        if (core.mode == REPLAY)
            cross_at_end() ? diverge("end", NULL, NULL, "") : diverge("unsupported", NULL, NULL, refused[i].sentence);
        note("unsupported", refused[i].sentence);
        log_fail(4);
    }
}

int
standins_module_loaded(PyObject *module, const char *name)
{
    refuse(name);
    return strcmp(name, "uvloop.loop") == 0 ? replace_uvloop(module) : 0;
}
