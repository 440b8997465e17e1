"""Recorded Jupyter kernels: their kernelspecs, and what such a kernel runs besides ipykernel."""
