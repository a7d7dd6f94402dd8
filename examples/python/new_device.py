"""A new device from twelve measurements and what is known of five others."""
import numpy as np

import fleetfit

space = fleetfit.space("nasbench201")
designs = space.sample(500)

# In earnest these are columns of a table: fleetfit.read_table("latencies.csv", space).
random = np.random.default_rng(0)
prices = random.uniform(0.2, 2, len(space.encodings["live"]))
features = space.encode(designs, "live")
known_ms = np.stack([1 + features @ (prices * random.uniform(0.5, 2, prices.size)) for _ in range(5)], axis=1)
hidden_ms = 1 + features @ (prices * random.uniform(0.5, 2, prices.size))

known = fleetfit.KnownDevices(space, designs, known_ms)
measured = known.choose(designs, 12)
model = known.fit(designs[measured], hidden_ms[measured])
ms, low, high = model.predict(designs)
print(f"mean error {100 * np.mean(np.abs(ms / hidden_ms - 1)):.1f} %; {100 * np.mean((low <= hidden_ms) & (hidden_ms <= high)):.0f} % "
      f"within their intervals; expected rank correlation {model.verdict['expected_srcc']:.3f}")
