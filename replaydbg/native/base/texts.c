/* Texts of the program's compared with ours, which are UTF-8 that keeps lone surrogates. Nothing is made for it: what
 * PyUnicode_AsUTF8() makes stays in the text. */
#include "base/core.h"

bool
text_is(PyObject *text, const char *other)
{
    const char *at = other;
    uint8_t character[4];
    if (!PyUnicode_Check(text))
        return false;
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(text); i++) {
        size_t n = put_character(character, PyUnicode_READ_CHAR(text, i));
        if (strncmp(at, (const char *)character, n) != 0)
            return false;
        at += n;
    }
    return *at == 0;
}

size_t
text_copy(char *to, size_t size, PyObject *text)
{
    size_t n = 0;
    Py_ssize_t length = PyUnicode_Check(text) ? PyUnicode_GET_LENGTH(text) : 0;
    if (length && (size_t)length < size && PyUnicode_IS_COMPACT_ASCII(text)) /* nearly all are */
        memcpy(to, PyUnicode_DATA(text), n = (size_t)length);
    for (Py_ssize_t i = (Py_ssize_t)n; i < length && n + 4 < size; i++)
        n += put_character((uint8_t *)to + n, PyUnicode_READ_CHAR(text, i));
    to[n] = 0;
    return n;
}
