"""fleetfit search and search bisect, on tables made up here: NAS-Bench-201 with costs that are sums over edges."""
import itertools
import json
import math
import random
import re

import cli

DESIGNS = ["".join(digits) for digits in itertools.product("01234", repeat=6)]
MS = {"0": 0.1, "1": 0.2, "2": 1.0, "3": 4.0, "4": 0.5}
OTHER_MS = {"0": 0.5, "1": 0.5, "2": 3.0, "3": 9.0, "4": 2.0}
MJ = {"0": 1, "1": 1, "2": 6, "3": 7, "4": 3}
WORTH = {"0": 0, "1": 2, "2": 6, "3": 9, "4": 3}


def total(costs, design):
    return round(1 + sum(costs[digit] * (1 + 0.1 * place) for place, digit in enumerate(design)), 6)


def accuracy(design):
    return round(50 + 5 * math.sqrt(sum(WORTH[digit] * (1 + 0.05 * place) for place, digit in enumerate(design))), 6)


ROWS = {d: f"{d},{total(MS, d)},{total(OTHER_MS, d)},{total(MJ, d)},{accuracy(d)}\n" for d in DESIGNS}


class SearchCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.table = self.write("table.csv", DESIGNS)
        self.accuracy = ["--space", "nasbench201", "--accuracy", f"table:{self.table}#accuracy"]
        self.sources = [*self.accuracy, "--latency", self.column("phone")]

    def write(self, name, designs):
        file = self.folder / name
        file.write_text("".join(["ops,phone,board,energy,accuracy\n", *(ROWS[d] for d in designs)]))
        return file

    def column(self, name):
        return f"table:{self.table}#{name}"


class Search(SearchCase):
    def test_exhaustive_gives_the_pareto_set(self):
        result = self.succeed_json("search", *self.sources, "--pareto", "--strategy", "exhaustive")
        best, front = -1, []
        for ms, points in sorted((total(MS, d), -accuracy(d)) for d in DESIGNS):
            if -points > best:
                best = -points
                front.append((ms, best))
        self.assertEqual([(p["latency_ms"], p["accuracy"]) for p in result["pareto"]], front)
        self.assertEqual(result["evaluations"], len(DESIGNS))
        self.assertGreater(result["hypervolume"]["value"], 0)

    def test_every_strategy_keeps_the_budget_and_comes_near_the_best(self):
        best = max(accuracy(d) for d in DESIGNS if total(MS, d) <= 9)
        for strategy in ("evolution", "nsga2", "annealing", "random", "exhaustive"):
            result = self.succeed_json("search", *self.sources, "--budget-ms", 9, "--strategy", strategy)
            self.assertLessEqual(result["best"]["latency_ms"], 9, strategy)
            self.assertGreater(result["best"]["accuracy"], best - 0.5, strategy)
            self.assertEqual(result["strategy"], strategy)
            self.assertEqual(result["best"]["accuracy"], accuracy(result["best"]["design"]))

    def test_two_limits_hold_at_once(self):
        result = self.succeed_json("search", *self.sources, "--energy", self.column("energy"), "--budget-ms", 12, "--budget-mj", 20)
        fitting = [d for d in DESIGNS if total(MS, d) <= 12 and total(MJ, d) <= 20]
        self.assertAlmostEqual(result["best"]["accuracy"], max(map(accuracy, fitting)))
        self.assertLessEqual(result["best"]["energy_mj"], 20)

    def test_a_larger_weight_makes_designs_faster(self):
        times = [self.succeed_json("search", *self.sources, "--weight", t)["best"]["latency_ms"] for t in (0.05, 0.4, 0.9)]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertLess(times[2], times[0])

    def test_the_same_seed_gives_the_same_result_for_any_number_of_threads(self):
        results = []
        for threads in (1, 2):
            result = self.succeed_json("search", *self.sources, "--pareto", "--seed", 7, "--threads", threads, "--generations", 5)
            del result["elapsed_s"]
            results.append(result)
        self.assertEqual(*results)

    def test_evolution_gives_a_pareto_set_by_many_weights(self):
        whole = self.succeed_json("search", *self.sources, "--pareto", "--strategy", "exhaustive")
        found = self.succeed_json("search", *self.sources, "--pareto", "--strategy", "evolution", "--population", 200)
        self.assertGreater(len(found["pareto"]), 0.5 * len(whole["pareto"]))

    def test_an_unreachable_budget_gives_the_nearest_design(self):
        outcome = cli.run("search", *self.sources, "--budget-ms", 0.5, "--strategy", "exhaustive", "--json")
        self.assertEqual(outcome.status, 1, outcome)
        result = self.parse_json(outcome)
        self.assertIsNone(result["best"])
        self.assertEqual(result["nearest"]["design"], "000000")
        self.assertEqual(result["pareto"], [])
        text = cli.run("search", *self.sources, "--budget-ms", 0.5, "--strategy", "exhaustive")
        self.assertEqual(text.status, 1)
        self.assertIn("000000", text.stdout)

    def test_results_go_to_a_file_and_a_page(self):
        page, file = self.folder / "page.html", self.folder / "result.json"
        result = self.succeed_json("search", *self.sources, "--budget-ms", 9, "--plot", page, "-o", file)
        self.assertEqual(json.loads(file.read_text()), result)
        html = page.read_text()
        self.assertIn(f'data-name="{result["best"]["design"]}"', html)
        self.assertNotRegex(html, r"(src|href)=")  # fetches nothing

    def test_a_table_of_few_designs_is_gone_through(self):
        few = self.write("few.csv", DESIGNS[::997])
        result = self.succeed_json("search", *self.accuracy, "--latency", f"table:{few}#phone", "--budget-ms", 100)
        self.assertEqual(result["evaluations"], len(DESIGNS[::997]))
        self.assertEqual(result["best"]["accuracy"], max(map(accuracy, DESIGNS[::997])))

    def test_accuracy_can_be_fitted_to_few_designs(self):
        few = self.write("few.csv", random.Random(1).sample(DESIGNS, 120))
        result = self.succeed_json("search", "--space", "nasbench201", "--latency", self.column("phone"), "--accuracy", f"fitted:{few}#accuracy", "--budget-ms", 9)
        source = result["sources"]["accuracy"]
        self.assertEqual(source["from"], "predicted")
        self.assertGreater(source["rank_correlation"], 0.9)
        self.assertGreater(accuracy(result["best"]["design"]), max(accuracy(d) for d in DESIGNS if total(MS, d) <= 9) - 2)

    def test_bad_input_is_named(self):
        self.refuse("search", *self.accuracy, "--latency", self.column("no_such"), "--pareto", naming="no_such")
        self.refuse("search", "--space", "no_such", "--accuracy", "table:a#b", "--latency", "table:a#b", "--pareto", naming="no_such")
        self.refuse("search", *self.sources, naming="goal")
        self.refuse("search", *self.sources, "--pareto", "--strategy", "magic", naming="magic")
        self.refuse("search", *self.accuracy, "--pareto", naming="--latency")
        self.refuse("search", *self.accuracy, "--latency", f"table:{self.table}", "--pareto", naming="FILE.csv#COLUMN")
        self.refuse("search", *self.accuracy, "--latency", "guess:7", "--pareto", naming="guess:7")
        self.refuse("search", *self.accuracy, "--latency", "device:nowhere", "--pareto", naming="nowhere")
        self.refuse("search", *self.sources, "--budget-ms", -3, naming="latency_ms")
        self.refuse("search", *self.sources, "--budget-mj", 3, naming="energy_mj")
        self.refuse("search", *self.sources, "--pareto", "--fit", "magic", naming="magic")
        broken = self.folder / "broken.csv"
        broken.write_text("ops,phone\n000000,1\n000001,-2\n")
        self.refuse("search", *self.accuracy, "--latency", f"table:{broken}#phone", "--pareto", naming="broken.csv:3:")


class Bisect(SearchCase):
    def bisect(self, *args):
        return ["search", "bisect", *self.accuracy, "--proxy", self.column("phone"), "--target", self.column("board"), *args]

    def test_few_measurements_find_a_good_design_for_another_device(self):
        for budget in (12, 20, 30):
            result = self.succeed_json(*self.bisect("--budget-ms", budget))
            self.assertLessEqual(result["measurements"], 10)
            self.assertEqual(len(result["steps"]), result["measurements"])
            self.assertEqual(len({step["design"] for step in result["steps"]}), result["measurements"])
            self.assertTrue(all(0 <= step["t"] <= 1 for step in result["steps"]))
            self.assertLessEqual(result["best"]["latency_ms"], budget)
            best = max(accuracy(d) for d in DESIGNS if total(OTHER_MS, d) <= budget)
            self.assertGreater(result["best"]["accuracy"], best - 0.5)

    def test_measurements_are_bounded_and_accounted_for(self):
        result = self.succeed_json(*self.bisect("--budget-ms", 20, "--max-measurements", 3, "--devices", 100, "--predictor-measurements", 1000))
        self.assertLessEqual(result["measurements"], 3)
        self.assertEqual((result["machine_s"], result["machine_s_from"]), (20 * result["measurements"], "assumed"))
        self.assertAlmostEqual(result["cost"]["by_predictors_s"], 100 * result["cost"]["each_predictor_s"])

    def test_energy_is_bisected_too(self):
        result = self.succeed_json(*self.bisect("--budget-ms", 25, "--proxy-energy", self.column("energy"), "--target-energy", self.column("energy"), "--budget-mj", 22))
        self.assertLessEqual(result["best"]["latency_ms"], 25)
        self.assertLessEqual(result["best"]["energy_mj"], 22)
        self.assertEqual(len(result["steps"][0]["t"]), 2)

    def test_baselines_are_told(self):
        result = self.succeed_json(*self.bisect("--budget-ms", 20, "--compare-scaling", "--compare-predictor", self.column("board")))
        self.assertIn("no gene of depth", result["baselines"]["scaling"]["remark"])
        best = max(accuracy(d) for d in DESIGNS if total(OTHER_MS, d) <= 20)
        self.assertAlmostEqual(result["baselines"]["own predictor"]["best"]["accuracy"], best)

    def test_the_page_shows_what_was_measured(self):
        page = self.folder / "page.html"
        outcome = self.succeed(*self.bisect("--budget-ms", 20, "--plot", page))
        self.assertIn("bisection", outcome.stdout)
        self.assertEqual(len(re.findall("<circle", page.read_text())), 11)  # ten, and the best once more

    def test_an_unreachable_budget_gives_the_nearest(self):
        outcome = cli.run(*self.bisect("--budget-ms", 0.5), "--json")
        self.assertEqual(outcome.status, 1, outcome)
        self.assertEqual(self.parse_json(outcome)["nearest"]["latency_ms"], min(total(OTHER_MS, d) for d in DESIGNS))

    def test_bad_input_is_named(self):
        self.refuse(*self.bisect(), naming="--budget-ms")
        self.refuse(*self.bisect("--budget-ms", 0), naming="latency_ms")
        self.refuse(*self.bisect("--budget-ms", 9, "--budget-mj", 9, "--target-energy", self.column("energy")), naming="energy_mj")
        self.refuse("search", "bisect", *self.accuracy, "--target", self.column("board"), "--budget-ms", 9, naming="--proxy")


if __name__ == "__main__":
    cli.main()
