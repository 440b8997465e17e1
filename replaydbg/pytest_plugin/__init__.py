"""The pytest plugin: a failing test keeps a recording of the failing run.

`entry` is what pytest loads at each start; it imports next to nothing. With a mode other than `off`, `startup` restarts
pytest as a recorded process. In that process `child` marks where tests begin and end. Its launcher, `parent`, cuts a
recording out of the growing log for each test that is to be kept, and starts an `examination` of it. Whatever people
read about it is made in `report`; `shared` has what these processes send each other.
"""
