# mypy: ignore-errors
# ruff: noqa
"""sympy: integrates, factors and solves something with random coefficients."""

import random

import sympy

x = sympy.Symbol("x")
a, b = random.randint(2, 9), random.randint(2, 9)
expression = sympy.expand((x + a) * (x - b) ** 2)
print(expression, "=", sympy.factor(expression))
print(sympy.integrate(sympy.sin(a * x) * sympy.exp(b * x), x))
print(sympy.solve(x**2 - a * x - b, x), sympy.randprime(10**6, 10**7), sympy.factorint(random.getrandbits(48)))
