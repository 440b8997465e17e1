"""Two threads ask two servers; the program relies on the one that was started first answering first."""

import os
import sys
import threading

answers = []


def ask(name, pages):
    for _ in range(pages):
        os.listdir("/")
    answers.append(name)


threads = [threading.Thread(target=ask, args=each) for each in (("near", 12), ("far", 15))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("ok" if answers[0] == "near" else "BUG", answers)
sys.exit(answers[0] != "near")
