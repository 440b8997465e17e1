# mypy: ignore-errors
# ruff: noqa
"""numpy: old and new generators, save and load, savez, tofile and fromfile, memmap, loadtxt."""

import numpy as np

numbers = np.random.default_rng().integers(0, 1000, size=(50, 4))
np.random.shuffle(numbers)
print(numbers[:3], numbers.sum(axis=0), np.random.rand(2), np.random.randint(10**9))
np.save("numbers.npy", numbers)
print((np.load("numbers.npy") == numbers).all())
np.savez_compressed("both.npz", numbers=numbers, noise=np.random.normal(size=100))
with np.load("both.npz") as both:
    print(sorted(both.files), both["noise"].mean())
numbers.astype("int32").tofile("numbers.raw")
print(np.fromfile("numbers.raw", dtype="int32").reshape(50, 4)[-1])
mapped = np.memmap("numbers.raw", dtype="int32", mode="r+", shape=(50, 4))
mapped[0] = 7
mapped.flush()
del mapped
print(np.fromfile("numbers.raw", dtype="int32")[:4])
np.savetxt("numbers.txt", numbers[:5], fmt="%d")
print(np.loadtxt("numbers.txt", dtype=int).tolist())
print(np.load("given.npy").tolist(), np.fromfile("given.raw", dtype="float64").tolist())
print(np.datetime64("now") > np.datetime64("2020-01-01"))
