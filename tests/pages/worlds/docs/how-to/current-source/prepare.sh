printf 'print(1)\n1 / 0\n' > shop.py
replaydbg record --quiet -o failure.rdbg shop.py || true
