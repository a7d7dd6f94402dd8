"""The best network of a space for a device that can only be guessed at: both numbers come from functions of our own."""
import numpy as np

import fleetfit

space = fleetfit.space("nasbench201")
names = space.encodings["counts"]
price_ms = np.array([5.0 if "3x3" in name and "conv" in name else 1.0 for name in names])


def latency(designs):
    return 1 + space.encode(designs, "counts") @ price_ms


def accuracy(designs):
    """More convolutions are better, those of 3x3 twice as much; only an example."""
    worth = np.array([2.0 if "conv3x3" in name else float("conv1x1" in name) for name in names])
    return space.encode(designs, "counts") @ worth


found = fleetfit.search("nasbench201", latency, accuracy, budget_ms=30.0)
print(found["best"])

front = fleetfit.search("nasbench201", latency, accuracy, pareto=True, strategy="exhaustive")["pareto"]
for one in front:
    print(f"{one['latency_ms']:6.1f} ms  {one['accuracy']:5.1f}  {one['design']}")
