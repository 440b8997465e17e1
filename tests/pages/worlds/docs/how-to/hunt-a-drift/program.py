import os


class Descriptor:
    def __init__(self, number):
        self.number = number
        self.used = 0

    def __index__(self):
        # What a call to the outside does not know of.
        self.used += 1
        return self.number


def later(descriptor):
    return descriptor.used


with open(__file__, "rb") as file:
    descriptor = Descriptor(file.fileno())
    os.read(descriptor, 100)
    print("read")
    for _ in range(later(descriptor)):
        print("used")
