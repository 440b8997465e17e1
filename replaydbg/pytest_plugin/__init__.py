"""The pytest plugin: a failing test hands over the failing run itself.

`entry` is what pytest loads at each start; it imports next to nothing. With a mode other than `off` it starts pytest
again as a recorded process (`relaunch`, `launcher`), in which `recorded` marks where tests begin and end. The launcher
cuts a recording out of the growing log for each test that is to be kept (`collector`, `cut`), and has it examined.
"""
