"""import fleetfit: predictors and transfer on devices whose laws are known."""
import numpy as np

import cli
import fleetfit


def ranks(values):
    """From 0; equal values have the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[place]


def rank_correlation(a, b):
    return np.corrcoef(ranks(a), ranks(b))[0, 1]


class OnKnownLaws(cli.Case):
    """Devices whose latency is a sum over operators, each with prices of its own."""

    def setUp(self):
        super().setUp()
        self.space = fleetfit.space("nasbench201")
        self.designs = self.space.sample(600, seed=3)
        self.features = self.space.encode(self.designs, "live")
        random = np.random.default_rng(1)
        base = random.uniform(0.2, 2, 31)
        self.devices = np.stack([self.features @ (base * random.uniform(0.5, 2, 31)) for _ in range(5)], axis=1) + 1
        self.target = self.features @ (base * random.uniform(0.5, 2, 31)) + 1

    def test_few_shot_tells_a_device_from_a_dozen_measurements(self):
        known = fleetfit.KnownDevices(self.space, self.designs, self.devices, names=list("abcde"))
        chosen = known.choose(self.designs, 12)
        self.assertEqual(len(set(chosen.tolist())), 12)
        model = known.fit(self.designs[chosen], self.target[chosen])
        ms, low, high = model.predict(self.designs)
        self.assertGreater(rank_correlation(ms, self.target), 0.9)
        self.assertTrue((low <= ms).all() and (ms <= high).all())
        self.assertGreater(np.mean((low <= self.target) & (self.target <= high)), 0.7)
        self.assertIn("enough", model.verdict)
        self.assertNotIn(model.next(self.designs, 1)[0], chosen)

    def test_few_shot_refuses_what_does_not_fit(self):
        with self.assertRaisesRegex(fleetfit.InvalidInput, "600 rows"):
            fleetfit.KnownDevices(self.space, self.designs, self.devices[:10])
        with self.assertRaisesRegex(fleetfit.InvalidInput, "names: expected 5"):
            fleetfit.KnownDevices(self.space, self.designs, self.devices, names=["a"])
        known = fleetfit.KnownDevices(self.space, self.designs, self.devices)
        with self.assertRaisesRegex(fleetfit.InvalidInput, "latency_ms: expected 3"):
            known.fit(self.designs[:3], self.target[:4])

    def test_adapting_finds_the_operator_that_became_slower(self):
        proxy = self.devices[:, 0]
        conv = next(i for i, name in enumerate(self.space.encodings["live"]) if "3x3" in name)
        target = 2 * proxy + 10 * self.features[:, conv]
        adapted = fleetfit.adapt(self.space, (self.designs, proxy), (self.designs[:80], target[:80]))
        self.assertFalse(adapted.kept_proxy)
        self.assertGreater(rank_correlation(adapted.predict(self.designs[80:]), target[80:]), 0.95)
        self.assertLess(rank_correlation(proxy[80:], target[80:]), 0.95)
        file = self.folder / "a.json"
        adapted.save(file)
        again = fleetfit.load_adapted(file, self.space)
        np.testing.assert_allclose(again.predict(self.designs), adapted.predict(self.designs), rtol=1e-9)

    def test_a_predictor_learns_a_sum_over_operators(self):
        predictor = fleetfit.train_design_predictor(self.space, self.designs[:200], self.target[:200], device="board")
        ms, low, high = predictor.predict(self.designs[200:])
        np.testing.assert_allclose(ms, self.target[200:], rtol=0.1)
        self.assertTrue((low <= high).all())
        self.assertEqual((predictor.space, predictor.device), ("nasbench201", "board"))
        file = self.folder / "p.json"
        predictor.save(file)
        np.testing.assert_allclose(fleetfit.load_design_predictor(file).predict(self.designs)[0], predictor.predict(self.designs)[0], rtol=1e-6)
        run = self.succeed_json("predict", "run", file, "--design", self.space.format(self.designs[0])[0])
        self.assertAlmostEqual(run[0]["latency_ms"], predictor.predict(self.designs[:1])[0][0], 5)

    def test_tables_are_read_as_matrices_and_correlated(self):
        table = self.folder / "t.csv"
        rows = ["ops,a,b"]
        for text, a, b in zip(self.space.format(self.designs), self.devices[:, 0], self.target):
            rows.append(f"{text},{a!r},{b!r}" if len(rows) != 5 else f"{text},{a!r},")
        table.write_text("\n".join(rows) + "\n", encoding="utf-8")
        designs, columns, numbers = fleetfit.read_table(table, self.space)
        self.assertEqual(columns, ["a", "b"])
        np.testing.assert_array_equal(designs, self.designs)
        self.assertTrue(np.isnan(numbers[4, 1]))
        self.assertEqual(np.isnan(numbers).sum(), 1)
        measured = np.arange(600) != 4
        srcc = fleetfit.correlate(table, "nasbench201")["srcc"]
        self.assertAlmostEqual(srcc[0, 1], rank_correlation(self.devices[measured, 0], self.target[measured]), 6)
        told = fleetfit.few_shot(table, "nasbench201", ["a"], "b", samples=12)
        self.assertEqual(told["latency_ms"].shape, (600,))
        self.assertAlmostEqual(told["srcc"], rank_correlation(told["latency_ms"][measured], self.target[measured]), 6)


if __name__ == "__main__":
    cli.main()
