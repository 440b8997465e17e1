"""Computes for so many rounds, four lines each; in the last third something goes wrong, once."""

import sys

rounds = int(sys.argv[1])
state = {"made": 0, "spent": 0, "lost": 0}


def work(number: int) -> None:
    state["made"] += number
    state["spent"] += number
    if number == rounds * 2 // 3:
        state["lost"] += 1


for each in range(rounds):
    work(each)
