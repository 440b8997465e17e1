"""Texts of the page about cost: for each row why it misses its target, and for each kind of growth its limits."""

# By the name of the row. A text is printed only while the row misses its target. Profiles are from `perf record -g`
# of whole commands and from cProfile, on 3.11.
REASONS: dict[str, str] = {
    "resume a killed program, 300,000 events": (
        "from one measurement to the next, on a noisy machine, the ratio for later events was between 0.85 and 1.19: a "
        "resumed program and a recorded one run the same code."
    ),
    "queue, 4 threads, 200,000 messages": (
        "a program with several threads counts ticks. On 3.11 `perf` sees 14% of the recording in the core, most of "
        "it at the interpreter's own checks (`checks_met`, `code_facts_find`, `ticks_tick`, `our_self`), 68% in "
        "libpython, whose instructions stay specialized, and 9% in the kernel. On 3.13 7% is "
        "`call_instrumentation_vector` of `sys.monitoring`, 7% the core. The replay counts the same ticks."
    ),
    "4 threads computing, rare lock": (
        "ticks again: on 3.11 14% of `perf`'s samples are in the core, half of them at the interpreter's checks, the "
        "other half in `free_block`, through which every object is freed. On 3.13, 8% is "
        "`call_instrumentation_vector`, 7% the core; the rest of the loop is slower by its instrumented jumps."
    ),
    "200 MB text by line": (
        "of 0.35 s more in the recording, the kernel takes 0.1 s: it copies the file into the live directory, and "
        "writes the recording from there; the launcher's start-up and sealing take 0.15 s, 30 ms of it `crc32_z` "
        "and 10 ms the signature. `free_block`, through which every object is freed, takes 20 ms, and `memcmp`, "
        "which compares each read with the copy, as long. The replay reads the file where it is in the recording; "
        "checking its blocks before the program begins takes 50 ms, and its start-up 90 ms. The search of the file for "
        "secrets when it is sealed takes 0.17 s: 0.9 ns for each byte, whatever the number of rules."
    ),
    "walk and open 20,000 files": (
        "there are nine events for each file. The core's hooks take a tenth of the recording (`idmap_slot`, "
        "`cross_end`, `encode`), the kernel a third, as in the plain run; sealing searches the log for secrets for "
        "0.06 s, and the launcher's start-up takes as long. In the replay the core takes 13% and decompression 2%; the "
        "rest is the start-up and the program's own Python."
    ),
    "import pandas, SQLAlchemy, aiohttp": (
        "the launcher takes 0.1 s, start-up included; byte code and sources come from the user's cache, already "
        "compressed, unless the program is recorded for the first or second time: then sealing takes 50 ms more. "
        "Of the recorded program, 15 ms are `identity_module_loaded`, which looks at all types after each of 110 "
        "extension modules, 9 ms `memchr` and 6 ms `relink_object`; the rest is spread over the core's hooks."
    ),
    "HTTP loopback, 2,000 requests": (
        "each request starts a thread, so ticks are counted. The kernel, with switches between threads, has 39% of "
        "the samples, the core 6%."
    ),
    "asyncio, 20,000 messages": (
        "each message is two sends, two receives and a wait. The kernel has two thirds of the samples, both plain and "
        "recorded. No function of the core has more than 1.5%; the additional time of the recording is spread over the "
        "core's hooks, and 50 ms are the launcher's."
    ),
    "json, re, csv": (
        "there are only 60 events. The profile of the recording is that of the plain run, plus start-up, sealing and "
        "the garbage collector, which the recorder runs itself (`gc_collect_main`, 2%)."
    ),
    "1 million `time.time()`, without start-up": (
        "the plain loop takes 60 ns per round, a third of it in `clock_gettime` itself. The recording adds the core's "
        "hook (`gate_regular`, `regular_crossing`), a second reading of the clock for the time stamps of the log, and "
        "the writing of the event. The kernel's share, 23%, is for the pages of the log and for sealing."
    ),
    "start-up, empty program": (
        "most of it is the launcher's imports, 117 modules of the tool among them: the command line, the store and the "
        "table of gates 30 ms, sealing and the rules for secrets 20 ms, which is twice as much as before secrets were "
        "searched and children recorded. The program's process takes 5 ms more than plain, the import of the core "
        "among them; the rest is starting it, waiting for it, and sealing."
    ),
    "pytest, 500 trivial tests, retain-on-failure": (
        "pytest is imported once. A quarter of the plain suite's time is the launcher, as for an empty program; the "
        "rest is in the recorded process, half of it the plugin's own hooks: about twenty calls by pluggy for each "
        "test, and the marks."
    ),
    "pytest plugin `on`, real test suites": (
        "the reasons are those of trivial tests; in addition, each test writes its recording. Suites whose tests take "
        "a millisecond or less take two to three and a half times as long; those that compute do not. [Test suites of "
        "packages](../test-suites.md) has the figures of fifteen suites."
    ),
    "a trivial failing test": (
        "nearly all is the fixed cost of a session and of its first failure: the launcher as for an empty program, "
        "then 180 shared files, one for each source and block (creating them takes as long as compressing them), and "
        "packing the first snapshot."
    ),
    "examination of a failing test": (
        "all failures of a run share one replay. The first has the fixed cost: 0.1 s for imports of the examining "
        "process, as much for decoding the index of the run, and a replay of pytest's own imports and collection "
        "under the step clock. What is left for each is `why` (0.25 s in flask's tests, nearly all of it processes "
        "that are copied) and the comparison of two heaps (0.3 s)."
    ),
    "`diff` of two moments, 1 M objects": (
        "the two copies that walk the heap take 0.4 s or more each, page faults included; comparing takes 0.2 s, and "
        "more where the changed values are spread over one large list (`object_diff._middle` goes through it in "
        "Python). Then come the writers, in one run for all of them, and 20 to 50 ms of steps between processes for "
        "each."
    ),
    "`why` of a rarely written attribute, 10 M lines": (
        "`Travel.scans_back` runs one stretch between two checkpoints after the other, backwards, two at a time, until "
        "one has the write; to compare the value at each line makes a line 1.8 times as long (68 to 120 ns, 3.11). If "
        "lines that ran since may have stored an equal value, `StorePassages` runs those stretches once more to select "
        "them."
    ),
    "`log --if`, conditional breakpoint, each passage": (
        "the condition is evaluated in the process that passes the line. The figure is wall time, so it includes the "
        "effect of other work on the machine."
    ),
    "seek, 10 M lines": (
        "the process for the new position starts from the checkpoint before it and runs to it under the step clock: at "
        "p95, its CPU time is about the distance between two checkpoints (0.06 s). The wall time also includes the "
        "forks on the way, and the effect of other work on the machine (`a process waited for a CPU`)."
    ),
    "seek, 100 M lines": (
        "the number of checkpoints is limited, so the distance between them grows with the run (a quarter of a second "
        "of CPU time on 3.11). Running from the checkpoint to the position took 70% of the wall time."
    ),
    "open 100 M lines to the first answer": (
        "nearly all of it is the first pass: one replay under the step clock that knows activations and counts lines, "
        "7 s of CPU time for 98.6 million lines on 3.11; the checkpoints that it leaves are 2% of that. A second "
        "opening shows the failure from the index before its pass is over."
    ),
}

# By kind, with a heading for each.
GROWTH: dict[str, str] = {
    "introduction": (
        "`python -m tests.bench --grow FILE` measures the growth, and `python -m tests.bench --plot FILE` draws it. "
        "Times are CPU seconds of whole commands; memory is the peak of the largest process of a command. The figures "
        "are for 3.11."
    ),
    "events heading": "With events",
    "events": (
        "A program that reads a clock. The time of recording, sealing and replaying is linear in the number of events, "
        "and the memory is constant: a process keeps at most 16 MiB of the log mapped. `verify` decodes every event in "
        "Python (`log/entries/stream.py: check_entries`), 2 us per event, also with constant memory; it is the first "
        "command to become too slow, at some 100 million events (200 s). Opening runs the program under the step clock "
        "and decodes the lines between events, 0.7 us per event. Its memory grows: the index contains the line at "
        "which each event happened, 8 bytes per event (`debugger/first_pass/run_index.py: _index`, `Index.starts`), "
        "and is read as a whole: 1 GB at 100 million events. It also grows with the number of exceptions raised: "
        "`Index.raises` is read and decoded as a whole."
    ),
    "bytes heading": "With the size of a recording",
    "bytes": (
        "A program that reads random bytes, which cannot be compressed, 4,000 at a time. Recording, `verify`, "
        "replaying and opening process the recording as a stream: for one of 10 GB each needs 20 to 30 MB of memory; "
        "an opening also needs 8 bytes per event for its index (2.5 million events at 10 GB). While a program runs, "
        "its log takes at least as much disk space as the recording will; sealing needs the space of both at once, and "
        "a replay unpacks a log of more than 256 MiB into a file in `/var/tmp`. So disk space is the limit: 10 GB need "
        "20 GB."
    ),
    "lines heading": "With lines",
    "lines": (
        "A loop of three lines. `counted` is a replay under the step clock, which counts every line. Neither the size "
        "of the recording nor the memory of any command depends on the number of lines."
    ),
    "threads heading": "With threads",
    "threads": (
        "40,000 messages to randomly chosen threads, each of which waits in `recv`. In a plain program the "
        "interpreter's lock moves from CPU to CPU, so the time varies with other work on the machine; in a recorded "
        "program replaydbg itself switches the threads."
    ),
    "objects heading": "With objects",
    "objects": (
        "Snapshots of a heap in which one object in a hundred is replaced, and the difference between two of them. The "
        "program is paused only while its process is copied (`pause`)."
    ),
}
