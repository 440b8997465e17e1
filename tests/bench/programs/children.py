"""100 subprocesses, one after the other, with their output captured."""

import subprocess


def main() -> None:
    """Lets a shell count."""
    total = 0
    for number in range(100):
        done = subprocess.run(
            ["/bin/sh", "-c", f"echo $(({number} * {number}))"], capture_output=True, text=True, check=True
        )
        total += int(done.stdout)
    print(total)


main()
