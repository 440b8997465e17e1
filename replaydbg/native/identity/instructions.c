/* Offsets of instructions that the program reads. In 3.11 a call happens at another instruction while a trace function
 * is set (code/site.c), as the step clock does, and the program must find the same with and without it. */
#include "base/core.h"
#include "code/code.h"
#include "identity/inside.h"

#if PY_VERSION_HEX < 0x030C0000

static getter lasti_original;

static PyObject *
frame_lasti(PyObject *self, void *closure)
{
    PyObject *lasti = lasti_original(self, closure);
    long offset = lasti ? PyLong_AsLong(lasti) : -1;
    if (offset < 0)
        return lasti;
    Py_DECREF(lasti);
    return PyLong_FromLong(call_place(((PyFrameObject *)self)->f_frame->f_code, (int)offset));
}

static PyObject *
traceback_lasti(PyObject *self, void *closure)
{
    PyTracebackObject *traceback = (PyTracebackObject *)self;
    return PyLong_FromLong(call_place(traceback->tb_frame->f_frame->f_code, traceback->tb_lasti));
}

static PyGetSetDef of_frame, of_traceback = {"tb_lasti", traceback_lasti};

int
instructions_install(void)
{
    PyObject *found = PyDict_GetItemString(PyFrame_Type.tp_dict, "f_lasti");
    if (found == NULL || Py_TYPE(found) != &PyGetSetDescr_Type)
        return -1;
    PyGetSetDescrObject *shown = (PyGetSetDescrObject *)found;
    lasti_original = shown->d_getset->get;
    of_frame = *shown->d_getset;
    of_frame.get = frame_lasti;
    shown->d_getset = &of_frame;
    PyObject *own = PyDescr_NewGetSet(&PyTraceBack_Type, &of_traceback);
    int failed = own ? PyDict_SetItemString(PyTraceBack_Type.tp_dict, "tb_lasti", own) : -1;
    Py_XDECREF(own);
    PyType_Modified(&PyTraceBack_Type);
    return failed;
}

#else

int
instructions_install(void)
{
    return 0;
}

#endif
