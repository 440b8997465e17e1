# mypy: ignore-errors
# ruff: noqa
"""simpy: a bank with two counters and random customers; the wall clock says how long it took."""

import random
import time

import simpy


def customer(env, name, counters, waits):
    arrived = env.now
    with counters.request() as turn:
        patience = random.uniform(1, 3)
        outcome = yield turn | env.timeout(patience)
        waits.append(env.now - arrived)
        if turn in outcome:
            yield env.timeout(random.expovariate(1 / 6))
            print(f"{env.now:8.4f} {name} is done")
        else:
            print(f"{env.now:8.4f} {name} leaves after {waits[-1]:.3f}")


def source(env, counters, waits):
    for number in range(40):
        env.process(customer(env, f"customer {number}", counters, waits))
        yield env.timeout(random.expovariate(1 / 3))


started = time.perf_counter()
env = simpy.Environment()
waits = []
env.process(source(env, simpy.Resource(env, capacity=2), waits))
env.run()
print(f"mean wait {sum(waits) / len(waits):.4f}, computed in {time.perf_counter() - started:.6f} s")
