# A job that is killed once, when it has begun to wait.
cat > job.py <<'END'
import os
import sys
import time

with open("out.txt", "a") as out:
    print("begun", file=out, flush=True)
    with open("pid", "w") as file:
        file.write(f"{os.getpid()}\n")
    while not os.path.exists("go"):
        time.sleep(0.01)
    print("ended", file=out, flush=True)
print("done")
END
cat > killer.sh <<'END'
until [ -s pid ]; do sleep 0.02; done
kill -9 "$(cat pid)"
touch go
END
