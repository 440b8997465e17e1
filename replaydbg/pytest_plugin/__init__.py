"""The pytest plugin: a failing test keeps a recording of the failing run.

`entry` is what pytest loads at each start; it imports next to nothing. With a mode other than `off` it restarts pytest
as a recorded process (`relaunch`, `launcher`), in which `recorded` marks where tests begin and end. The launcher cuts a
recording out of the growing log for each test that is to be kept (`collector`, `log.edit`), and has it examined.
"""
