"""Recorded Jupyter kernels."""
