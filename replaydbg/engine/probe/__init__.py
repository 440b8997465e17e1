"""The probe: a package that runs inside a copy of the program and answers queries about it.

The core runs `loader.py` there, which loads the other modules into a namespace of their own: the program's
`sys.modules`, import hooks and audit hooks are not touched by it. The modules import each other like those of any
package; outside a program, `core`, which the C core lends, does not exist. They import nothing dispensable: that would
slow down every variable that is shown, and at the program's end nothing can be imported.
"""
