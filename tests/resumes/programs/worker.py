"""A child process squares numbers, asked over pipes; the program enters the answers, and starts a new child if it is lost."""
import subprocess
import sys

SQUARES = """import sys
for line in sys.stdin:
    print(int(line) ** 2, flush=True)
"""
count = int(sys.argv[1])


def start():
    return subprocess.Popen(
        [sys.executable, "-c", SQUARES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


with open("ledger", "ab", buffering=0) as ledger:
    child, number = start(), 0
    while number < count:
        try:
            child.stdin.write(f"{number}\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            try:
                child.stdin.close()
            except BrokenPipeError:
                pass
            child.stdout.close()
            child.wait()
            child = start()
            continue
        assert int(answer) == number**2
        ledger.write(b"%d\n" % number)
        number += 1
    child.stdin.close()
    child.wait()
    child.stdout.close()
print("entered", count)
