"""Programs whose child is a fixture, and which end as it does."""

FORKS = '''"""Fork; the child becomes the program that is named, as far as it can see."""
import os as _os, sys as _sys
_child = _os.fork()
if _child:
    _code = _os.waitstatus_to_exitcode(_os.waitpid(_child, 0)[1])
    _sys.exit(_code if _code >= 0 else 128 - _code)
del _sys.argv[0], _child
__file__ = _sys.argv[0]
with open(__file__, "rb") as _file:
    _code = compile(_file.read(), __file__, "exec")
del _file
exec(_code)
'''

STARTS = '''"""Start the program that is named, with this interpreter and its options."""
import subprocess, sys
options = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv)]
code = subprocess.call([sys.executable, *options, *sys.argv[1:]])
sys.exit(code if code >= 0 else 128 - code)
'''

PARENTS = {"fork": (FORKS, "--children=fork"), "subprocess": (STARTS, "--children=python")}
"""For each way of being a child: the parent's source, and the option with which the child is recorded."""
