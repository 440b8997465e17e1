"""`python -m tests.fuzz`: mutates recordings, and looks for what their readers, a replay or the debugger do wrong.

A mutation keeps what surrounds it sound: checksums, framing, the numbers of records and columns. So it reaches the
decoders behind them. Others change bytes anywhere, or cut the file.

| module | what |
|---|---|
| `corpus` | the seeds, made anew at each start, and the inputs that were kept; an input is a kind and its bytes |
| `mutate` | one mutation of an input, from a random number generator alone |
| `chunks`, `documents`, `logs`, `snapshots`, `framing` | the mutations of bytes, JSON, logs, snapshots, sealed files |
| `targets` | what reads an input in this process: each returns a signature, or raises |
| `canary` | what a reader must not do: start a process, write a file, import what a recording names |
| `outside` | `replay` and `debug --batch`, each as a command, also on a core with AddressSanitizer (`sanitized`) |
| `worker` | the loop of one process; what it is at lies in memory that its parent sees, so that a crash has its input |
| `pool` | the workers, the time, the figures |
| `findings` | saves a finding with a minimised input and the command that repeats it |

A finding is a traceback of ours, a signal, a report of the sanitizer, an exit code that is not documented, more than
10 s of CPU time, more than 1 GB, or an act that the canary saw. An input that gives a new signature (the shape of the
sentences, an exit code, on Python 3.12 and newer a line of the readers that never ran before) joins the corpus.

Of a replay the log, the header, the end and the framing are mutated; the program's code and the files that it
imports are not. Byte code that somebody has edited can crash CPython itself, with or without us.

Hypothesis is not used: its data comes from strategies, ours from files, and it makes some hundred cases a second.
Atheris is not: it builds on LLVM's libFuzzer, and its wheels do not cover all of Python 3.11 to 3.13.
"""
