"""Ends with an exception, after a signal and a child's output in a pipe."""

import os
import signal
import time


class Order:
    def __init__(self, price: float) -> None:
        self.price = price


orders = []
signal.signal(signal.SIGUSR1, lambda number, frame: orders.append(Order(number)))
for number in range(20):
    orders.append(Order(time.time()))
    if number == 10:
        os.kill(os.getpid(), signal.SIGUSR1)
read, write = os.pipe()
os.write(write, b"x" * 100)
print(os.read(read, 100), os.getcwd())
raise ValueError(sum(each.price for each in orders) > 0)
