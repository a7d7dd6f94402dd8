"""import fleetfit: spaces as matrices, and searches with functions."""
import itertools

import numpy as np

import cli
import fleetfit


def all_designs():
    """Every design of nasbench201: five choices for each of six edges, all of them active."""
    return np.array(list(itertools.product(range(5), repeat=6)))


class Spaces(cli.Case):
    def setUp(self):
        super().setUp()
        self.space = fleetfit.space("nasbench201")

    def test_have_their_exact_size(self):
        self.assertEqual(self.space.size, 5**6)
        self.assertEqual(fleetfit.space("fbnet").size, 9**22)
        self.assertEqual({one["name"] for one in fleetfit.spaces()}, {one["name"] for one in self.succeed_json("space", "list")})

    def test_samples_are_those_of_the_command_line(self):
        designs = self.space.sample(20, seed=7, first=3)
        self.assertEqual((designs.shape, designs.dtype), ((20, 6), np.uint16))
        sampled = self.succeed_json("space", "sample", "nasbench201", "--samples", 20, "--first", 3, "--seed", 7)
        self.assertEqual(self.space.format(designs), [one["design"] for one in sampled])

    def test_texts_and_matrices_say_the_same(self):
        designs = self.space.sample(50)
        texts = self.space.format(designs)
        np.testing.assert_array_equal(self.space.parse(texts), designs)
        np.testing.assert_array_equal(self.space.encode(texts), self.space.encode(designs))
        np.testing.assert_array_equal(self.space.encode(texts[3])[0], self.space.encode(designs)[3])
        np.testing.assert_array_equal(self.space.encode(designs[3])[0], self.space.encode(designs)[3])

    def test_one_hot_has_a_one_for_each_edge_and_the_constant(self):
        rows = self.space.encode(self.space.sample(50), "one-hot")
        self.assertEqual(rows.shape, (50, 6 * 5 + 1))
        self.assertEqual(len(self.space.encodings["one-hot"]), 31)
        np.testing.assert_array_equal(rows.sum(axis=1), np.full(50, 7))

    def test_a_design_is_described_as_published(self):
        # NATS-Bench: 15.6474 million multiply-accumulates, 0.129306 million parameters.
        told = self.space.describe("421211", onnx=self.folder / "cell.onnx")
        self.assertAlmostEqual(told["flops"] / 2e6, 15.6474, 4)
        self.assertEqual(told["params"], 129306)
        self.assertEqual(fleetfit.inspect(self.folder / "cell.onnx")["totals"]["params"], 129306)

    def test_what_is_no_design_is_named(self):
        for designs, naming in (([[0, 0, 0, 0, 0, 5]], "row 0, edge 2>3: there is no choice 5"),
                                ([[0] * 6, [0, -1, 0, 0, 0, 0]], "row 1"),
                                ([[0, 0, 0]], "6 columns"),
                                (np.zeros((2, 6)), "whole numbers"),
                                ([[[0] * 6]], "6 columns"),
                                (["42121"], "edge 2>3"),
                                (None, "expected"),
                                ([[1, 2], [3]], "expected")):
            with self.subTest(naming=naming), self.assertRaisesRegex(fleetfit.InvalidInput, naming):
                self.space.encode(designs)
        # In elastic spaces, genes of blocks that are not there are 0.
        with self.assertRaisesRegex(fleetfit.InvalidInput, "row 0"):
            elastic = fleetfit.space("ofa-mbv3")
            shortest = np.array([elastic.parse([elastic.format(elastic.sample(1))[0]])[0]])
            shortest[:] = [len(gene["choices"]) - 1 for gene in elastic.genes]
            for number, gene in enumerate(elastic.genes):
                if "depth" in gene["name"] or gene["name"].startswith("stage"):
                    shortest[0, number] = 0
            elastic.encode(shortest)


class Search(cli.Case):
    def setUp(self):
        super().setUp()
        self.space = fleetfit.space("nasbench201")
        random = np.random.default_rng(5)
        self.cost, self.worth = random.uniform(0.1, 1, 31), random.uniform(0, 1, 31)

    def latency(self, designs):
        return self.space.encode(designs) @ self.cost

    def accuracy(self, designs):
        return self.space.encode(designs) @ self.worth

    def test_finds_what_going_through_all_finds(self):
        designs = all_designs()
        latency, accuracy = self.latency(designs), self.accuracy(designs)
        budget = float(np.quantile(latency, 0.3))
        best = np.argmax(np.where(latency <= budget, accuracy, -np.inf))
        for strategy in ("exhaustive", "evolution"):
            found = fleetfit.search("nasbench201", self.latency, self.accuracy, budget_ms=budget, strategy=strategy)
            self.assertEqual(found["best"]["design"], self.space.format(designs[best])[0])
            self.assertAlmostEqual(found["best"]["latency_ms"], latency[best])
        self.assertEqual(found["sources"]["latency_ms"]["source"], "own:latency")

    def test_takes_functions_and_texts_together(self):
        table = self.folder / "t.csv"
        table.write_text("ops,pixel\n421211,3\n111111,2\n000000,1\n", encoding="utf-8")
        found = fleetfit.search("nasbench201", f"table:{table}#pixel", lambda designs: designs.sum(axis=1), budget_ms=2.5)
        self.assertEqual(found["best"], {"design": "111111", "latency_ms": 2, "accuracy": 6})

    def test_exceptions_of_functions_come_through(self):
        def broken(designs):
            return 1 / 0

        with self.assertRaises(ZeroDivisionError):
            fleetfit.search("nasbench201", broken, self.accuracy, budget_ms=1)
        with self.assertRaisesRegex(fleetfit.InvalidInput, "one for each design"):
            fleetfit.search("nasbench201", lambda designs: [1.0], self.accuracy, budget_ms=1)
        with self.assertRaisesRegex(fleetfit.InvalidInput, "needs a goal"):
            fleetfit.search("nasbench201", self.latency, self.accuracy)
        with self.assertRaisesRegex(fleetfit.InvalidInput, "latency: expected"):
            fleetfit.search("nasbench201", 3, self.accuracy, budget_ms=1)

    def test_a_source_that_would_wait_for_its_own_search_is_refused(self):
        place = fleetfit.Workplace("memory:")
        other = fleetfit.Workplace("memory:")

        def latency(designs):
            other.studies()
            return self.latency(designs)

        place.search("nasbench201", latency, self.accuracy, budget_ms=10, generations=1)
        with self.assertRaisesRegex(fleetfit.InvalidInput, "its own search"):
            place.search("nasbench201", lambda designs: place.studies(), self.accuracy, budget_ms=10)

    def test_bisect_measures_seldom(self):
        counted = []

        def target(designs):
            counted.append(len(designs))
            return 3 * self.latency(designs) + 1

        place = fleetfit.Workplace("memory:")
        found = place.bisect("nasbench201", self.latency, target, self.accuracy, budget_ms=8.0, max_measurements=6)
        self.assertLessEqual(found["measurements"], 6)
        self.assertEqual(sum(counted), found["measurements"])
        self.assertLessEqual(found["best"]["latency_ms"], 8.0)


if __name__ == "__main__":
    cli.main()
