# mypy: ignore-errors
# ruff: noqa
"""deap: a genetic algorithm from unseeded random numbers."""

import random

from deap import algorithms, base, creator, tools

creator.create("Best", base.Fitness, weights=(1.0,))
creator.create("Individual", list, fitness=creator.Best)
toolbox = base.Toolbox()
toolbox.register("bit", random.randint, 0, 1)
toolbox.register("individual", tools.initRepeat, creator.Individual, toolbox.bit, 40)
toolbox.register("population", tools.initRepeat, list, toolbox.individual)
toolbox.register("evaluate", lambda individual: (sum(individual),))
toolbox.register("mate", tools.cxTwoPoint)
toolbox.register("mutate", tools.mutFlipBit, indpb=0.05)
toolbox.register("select", tools.selTournament, tournsize=3)
best = tools.HallOfFame(1)
stats = tools.Statistics(lambda individual: individual.fitness.values)
stats.register("mean", lambda values: sum(value[0] for value in values) / len(values))
stats.register("max", max)
algorithms.eaSimple(toolbox.population(n=60), toolbox, 0.5, 0.2, 12, stats=stats, halloffame=best)
print(sum(best[0]), "".join(map(str, best[0])))
