"""The functions of tune_bench in Python: the same as in tune_functions.cc, with the numbers of a point by position."""
import csv
import math
import os

DATA = os.environ.get("FLEETFIT_SHARED_DATA", "../shared/data")


def branin(p):
    x, y = p
    bent = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return bent * bent + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


HARTMANN_A = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14))
HARTMANN_P = ((1312, 1696, 5569, 124, 8283, 5886), (2329, 4135, 8307, 3736, 1004, 9991),
              (2348, 1451, 3522, 2883, 3047, 6650), (4047, 8828, 8732, 5743, 1091, 381))


def hartmann6(p):
    value = 0.0
    for alpha, a, centre in zip((1.0, 1.2, 3.0, 3.2), HARTMANN_A, HARTMANN_P):
        value -= alpha * math.exp(-sum(a[i] * (p[i] - centre[i] * 1e-4) ** 2 for i in range(6)))
    return value


def levy(x):
    w = [1 + (v - 1) / 4 for v in x]
    value = math.sin(math.pi * w[0]) ** 2 + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    for v in w[:-1]:
        value += (v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2)
    return value


def levy_mixed(p):
    a, b, c, d, e = p
    return levy([4 * (math.log10(a) + 2), b, c, d, math.log2(e) - 4])


def choice_and_numbers(p):
    kind, gate = int(p[0]), int(p[1])
    shift = (-3.0, 2.5, 1.0, -1.5, 4.0)[kind]
    value = (1.0, 0.6, 0.0, 0.3, 1.5)[kind] + (0.5, 0.0, 0.25)[gate] * (1 + 0.1 * p[2] * p[2])
    for i in range(3):
        away = p[2 + i] - shift * (i + 1) / 3
        value += 0.5 * (1 - math.cos(1.5 * away)) + 0.1 * away * away
    return value


def conditional_optimizer(p):
    if p[0] == 0:
        value = 0.08 + 0.03 * (math.log10(p[1]) + 0.5) ** 2
    elif p[0] == 1:
        value = 0.03 + 0.04 * (math.log10(p[2]) + 2) ** 2 + 0.5 * (p[3] - 0.9) ** 2
    else:
        value = 0.05 * (math.log10(p[4]) + 3) ** 2 + 0.3 * (p[5] - 0.9) ** 2
    layers = int(p[6])
    value += (0.06, 0.0, 0.02)[layers]
    for i in range(layers + 1):
        value += 0.01 * (math.log2(p[7 + i]) - (6 - i)) ** 2
    return value


def classifier(p):
    rate = math.log10(p[0]) + 2 - 0.5 * math.log10(p[1] / 64)
    batch = math.log2(p[1] / 64)
    decay = math.log10(p[2]) + 4 + 0.3 * math.log2(p[4] / 256)
    drop = p[3] - 0.2
    width = math.log2(p[4] / 256)
    bend = 0.15 * rate * rate + (0.3 * rate * rate if rate > 0 else 0) + 0.01 * batch * batch + 0.03 * decay * decay + drop * drop
    bend += 0.02 * width * width
    ripple = 0.004 * (1 - math.cos(40 * rate)) + 0.004 * (1 - math.cos(25 * drop))
    return 0.05 + 0.85 * (1 - math.exp(-bend)) + ripple


def ackley5(p):
    squares = sum(v * v for v in p) / 5
    waves = sum(math.cos(2 * math.pi * v) for v in p) / 5
    return -20 * math.exp(-0.2 * math.sqrt(squares)) - math.exp(waves) + 20 + math.e


def rosenbrock4(p):
    return sum(100 * (p[i + 1] - p[i] ** 2) ** 2 + (1 - p[i]) ** 2 for i in range(3))


def camel(p):
    x, y = p
    return (4 - 2.1 * x * x + x**4 / 3) * x * x + x * y + (-4 + 4 * y * y) * y * y


def styblinski_mixed(p):
    x = [p[0], p[1], 2 * (math.log10(p[2]) + 2.5), p[3]]
    return sum(v**4 - 16 * v * v + 5 * v for v in x) / 8


def goldstein(p):
    x, y = p
    one = 1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x * x - 14 * y + 6 * x * y + 3 * y * y)
    two = 30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x * x + 48 * y - 36 * x * y + 27 * y * y)
    return math.log(one * two)


CHOICES = ((0.9, 0.0, 0.4, 0.7, 0.2, 1.1), (0.3, 0.8, 0.5, 0.0, 1.0, 0.6), (0.0, 0.2, 0.9, 0.4, 0.6, 0.1), (0.7, 0.5, 0.3, 0.9, 0.0, 0.8))


def choices(p):
    cost = [CHOICES[i][int(p[i])] for i in range(4)]
    value = sum(cost) + cost[0] * cost[1] + cost[2] * cost[3]
    return value + 2 * (p[4] - 0.3 - 0.1 * cost[0]) ** 2 + 2 * (p[5] - 0.6 + 0.2 * cost[2]) ** 2


def conditional_depth(p):
    value = 0.2 if p[0] == 0 else 0.05 * (math.log10(p[1]) - 0.3) ** 2
    depth = int(p[2]) + 2
    value += 0.05 * abs(depth - 4)
    for i in range(depth):
        value += 0.3 * ((p[3 + i] - 12 * (i + 1)) / 64) ** 2
    return value + 0.04 * (math.log10(p[8]) + 2.2 + 0.1 * depth) ** 2


def griewank8(p):
    product = 1.0
    for i, v in enumerate(p):
        product *= math.cos(v / math.sqrt(i + 1))
    return 1 + sum(v * v for v in p) / 4000 - product


class Tables:
    """Values of all 15,625 cells of NAS-Bench-201, by the digits of its operators."""

    def __init__(self):
        accuracy, latency = f"{DATA}/accuracy/nasbench201.csv", f"{DATA}/latency/nasbench201.csv"
        with open(accuracy) as file:
            rows = {row["ops"]: row for row in csv.DictReader(file)}
        with open(latency) as file:
            raspi4 = {row["ops"]: float(row["raspi4"]) for row in csv.DictReader(file)}
        self.values = {
            "nasbench201_latency": {ops: 100 - float(row["in16_test_200ep"]) + 0.2 * raspi4[ops] for ops, row in rows.items()},
            "nasbench201_fidelities": {ops: 100 - float(row["c10_test_200ep"]) for ops, row in rows.items()},
            "nasbench201_c100": {ops: 100 - float(row["c100_test_200ep"]) for ops, row in rows.items()},
        }
        self.low_fidelity = {ops: 100 - float(row["c10_val_12ep"]) for ops, row in rows.items()}

    @staticmethod
    def key(p):
        return "".join(str(int(v)) for v in p)


def function(name, tables):
    if name in tables.values:
        table = tables.values[name]
        return lambda p: table[Tables.key(p)]
    return globals()[name]


def optimum(entry, tables):
    if entry["name"] in tables.values:
        return min(tables.values[entry["name"]].values())
    return entry["optimum"]
