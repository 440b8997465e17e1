cat > PROGRAM.py <<'END'
import os
import threading


def work():
    with open(os.devnull) as file:
        file.read()


threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
END
