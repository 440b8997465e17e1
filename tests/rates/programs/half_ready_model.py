"""Two things are loaded, and "both are missing" is asked: who comes in between uses the second before it is there.

After https://github.com/chroma-core/chroma/pull/1194.
"""

import os
import sys
import threading


class Embedding:
    model = tokenizer = None

    def load(self):
        if self.model is None and self.tokenizer is None:
            self.tokenizer = os.stat("/").st_mode
            os.listdir("/")
            self.model = os.stat("/").st_mode

    def embed(self):
        self.load()
        return self.model + self.tokenizer


embeddings = [Embedding() for _ in range(40)]
failures = []
start = threading.Barrier(2)


def work():
    start.wait()
    for number, each in enumerate(embeddings):
        try:
            each.embed()
        except TypeError as error:
            failures.append((number, str(error)))


threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("BUG" if failures else "ok", failures)
sys.exit(bool(failures))
