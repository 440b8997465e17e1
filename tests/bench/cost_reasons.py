"""Texts of the page about cost: for each row why it misses its target, and for each kind of growth its limits."""

# By the name of the row. A text is printed only while the row misses its target. Profiles are from `perf record -g`
# of whole commands and from cProfile, on 3.11.
REASONS: dict[str, str] = {
    "queue, 4 threads, 200,000 messages": (
        "a program with several threads counts ticks. `perf` sees four fifths of the recording in libpython: under a "
        "trace function the interpreter of 3.11 uses none of its specialized instructions "
        "(`_PyEval_EvalFrameDefault`, `_PyObject_GetMethod`, `_PyType_Lookup`, `call_trace`); the core itself "
        "(`trace`, `code_facts_find`, `ticks_tick`) is a tenth. The replay counts the same ticks and has the same "
        "profile. On 3.13 `sys.monitoring` leaves the instructions specialized: 7% is `call_instrumentation_vector`, "
        "7% the core."
    ),
    "4 threads computing, rare lock": (
        "ticks again: of `perf`'s samples, half are in `_PyEval_EvalFrameDefault` without specialized instructions (a "
        "third of a run half as long when plain), 5% in `call_trace`, and a tenth in the core (`trace`, `ticks_tick`, "
        "the clock). On 3.13, 8% is `call_instrumentation_vector`, 7% the core, most of it in `free_block`, through "
        "which every object is freed; the rest of the loop is slower by its instrumented jumps."
    ),
    "200 MB text by line": (
        "`perf` attributes 14% of the recording to the kernel, which copies the file and writes the recording; 8% to "
        "`PyBlake2_blake2b_compress` in the launcher, which names the blocks of the copied file when it seals the "
        "recording; and 2% to `memcmp`, which compares each read with the copy. Of the replay, 12% is in the kernel "
        "and 8% in libc, which unpack the copy before the program begins. The rest is the program's own parsing."
    ),
    "walk and open 20,000 files": (
        "there are nine events for each file. The core's hooks take a tenth of the recording (`idmap_slot`, "
        "`regular_crossing`), the kernel a third, as in the plain run. In the replay the core takes 13% and "
        "decompression 2%; the rest is the start-up and the program's own Python."
    ),
    "import pandas, SQLAlchemy, aiohttp": (
        "`strace` shows that the recorder creates 505 files, one for each source that was imported, which the "
        "launcher puts into the recording and removes: the kernel is 27% of the recording against 11% plain "
        "(`find_get_block_common`, `recently_deleted`: ext4 looks for free inodes), and `ZSTD_compressBlock_fast` is "
        "another 4%."
    ),
    "HTTP loopback, 2,000 requests": (
        "each request starts a thread, so ticks are counted: half of the samples are in libpython without specialized "
        "instructions. The kernel, with switches between threads, is 39%, the core 6%."
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
        "three quarters of the samples are in the launcher's process: it imports what a recording needs (`-X "
        "importtime`: `replaydbg.cli.running.record`), and starts and waits for the program. The program's process "
        "has a quarter, mostly the import of the recorder before the first line."
    ),
    "pytest, 500 trivial tests, retain-on-failure": (
        "by process, `perf` sees two thirds in the session itself, 28% in the launcher that starts it and collects, "
        "and 4% in a third one. The session runs as a recorded program does: the collector of cyclic garbage is 8% "
        "and the core 3%; the rest is the plugin's hooks around each test."
    ),
    "pytest plugin `on`, real test suites": (
        "the reasons are those of trivial tests; in addition, each test writes its recording. Suites whose tests take "
        "a millisecond or less (sqlparse, click) take twice as long; those that compute do not. [Test suites of "
        "packages](../test-suites.md) has the figures of fifteen suites."
    ),
    "a trivial failing test": (
        "two thirds of the CPU time is what a session of one passing test costs, too (+330 to 350 ms: the launcher, "
        "the recorder's imports in the session, sealing); the failure itself adds 150 ms, which write the recording. "
        "The index, written by the examination, is twice as large as the recording."
    ),
    "examination of a failing test": (
        "cProfile of an examination after 500 tests: half of it opens the smaller recording, where `find_failure` and "
        "`read_index` decode every exception and the index value by value in Python (`log/decode.py`, "
        "`log/shapes.py`), a quarter compares two heaps in `other_values` (`_changed` builds objects for 8,000 "
        "changes), a sixth writes the smaller recording (`make_smaller`); the replay itself is 6%."
    ),
    "`diff` of two moments, 1 M objects": (
        "cProfile: 86% is the search for the writers of ten changed values (`commands/heap_commands.py: writers`), "
        "nearly all of it in `equal_writes.py: _between`, which asks 2,000 copies of a process with a million "
        "objects; forking each costs 8 ms. Nothing is printed before. The two snapshots take 4 s of 75 under the "
        "profiler, the comparison less than 1 s."
    ),
    "`why` of a rarely written attribute, 10 M lines": (
        "cProfile: `Travel.scans_back` has four fifths of the search. It runs one stretch between two checkpoints "
        "after the other, backwards, under the clock, until one has the write: for a value from the first lines it "
        "runs the whole program once more."
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
        "60% is the first pass: one replay under the step clock that leaves checkpoints. After it the index is written "
        "and read: `run_index._raised` decodes every exception of the run value by value in Python (half of the "
        "opening of a run of 3 million lines, by cProfile). A second opening runs the pass again, because checkpoints "
        "are processes and end with their session."
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
        "Python (`log/stream.py: check_entries`), 2 us per event, also with constant memory; it is the first command "
        "to become too slow, at some 100 million events (200 s). Opening runs the program under the step clock and "
        "decodes the lines between events, 0.7 us per event. Its memory grows: the index contains the line at which "
        "each event happened, 8 bytes per event (`debugger/first_pass/run_index.py: _index`, `Index.starts`), and is "
        "read as a whole: 1 GB at 100 million events. It also grows with the number of exceptions raised: "
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
