"""fleetfit transfer srcc, estimate, select, adapt and run, on tables made up here: NAS-Bench-201 with latencies that are sums over edges."""
import itertools
import json
import random

import cli

DESIGNS = ["".join(digits) for digits in itertools.product("01234", repeat=6)]
PHONE = {"0": 0.1, "1": 0.2, "2": 1.0, "3": 4.0, "4": 0.5}
BOARD = {"0": 0.3, "1": 0.4, "2": 1.0, "3": 1.5, "4": 6.0}  # slow at pooling


def total(costs, design, factor=1):
    return factor * (1 + sum(costs[digit] * (1 + 0.1 * place) for place, digit in enumerate(design)))


def worth(design):
    return 50 + sum({"0": 0, "1": 1, "2": 4, "3": 7, "4": 2}[digit] for digit in design)


def row(design):
    return {"ops": design, "phone": total(PHONE, design), "twin": total(PHONE, design, 3), "board": total(BOARD, design), "accuracy": worth(design)}


def ranks(values):
    order = sorted(values)
    first = {v: i for i, v in reversed(list(enumerate(order)))}
    last = {v: i for i, v in enumerate(order)}
    return [(first[v] + last[v]) / 2 for v in values]


def spearman(a, b):
    x, y = ranks(a), ranks(b)
    middle = (len(x) - 1) / 2
    top = sum((p - middle) * (q - middle) for p, q in zip(x, y))
    return top / (sum((p - middle) ** 2 for p in x) * sum((q - middle) ** 2 for q in y)) ** 0.5


class TransferCase(cli.Case):
    def setUp(self):
        super().setUp()
        some = random.Random(1).sample(DESIGNS, 1500)
        self.rows = [row(design) for design in some]
        self.table = self.write(self.rows)

    def write(self, rows, columns=("phone", "twin", "board"), name="table.csv"):
        file = self.folder / name
        lines = [",".join(("ops", *columns))] + [",".join(str(r[c]) for c in ("ops", *columns)) for r in rows]
        file.write_text("\n".join(lines) + "\n")
        return file

    def verb(self, verb, *args, table=None):
        return ["transfer", verb, table or self.table, "--space", "nasbench201", *args]


class Srcc(TransferCase):
    def test_is_spearmans_of_each_pair(self):
        result = self.succeed_json(*self.verb("srcc", "--devices", "phone,board"))
        self.assertEqual(result["devices"], ["phone", "board"])
        expected = spearman([r["phone"] for r in self.rows], [r["board"] for r in self.rows])
        self.assertAlmostEqual(result["srcc"][0][1], expected, delta=1e-9)
        self.assertEqual(result["empty_cells"], 0)

    def test_leaves_empty_cells_out_by_pairs_and_says_so(self):
        for number, r in enumerate(self.rows):
            if number % 3 == 0:
                r["board"] = ""
        table = self.write(self.rows)
        result = self.succeed_json(*self.verb("srcc", table=table))
        kept = [r for r in self.rows if r["board"] != ""]
        self.assertAlmostEqual(result["srcc"][0][2], spearman([r["phone"] for r in kept], [r["board"] for r in kept]), delta=1e-9)
        self.assertEqual((result["designs"][0][2], result["designs"][0][1], result["empty_cells"]), (1000, 1500, 500))
        self.assertIn("500 cells are empty", self.succeed(*self.verb("srcc", table=table)).stdout)

    def test_explains_agreement_by_rooflines_and_draws_a_heat_map(self):
        page = self.folder / "map.html"
        result = self.succeed_json(*self.verb("srcc", "--heatmap", page, "--peak", "phone=40,15", "--peak", "board=9000,100"))
        (pair,) = result["rooflines"]
        self.assertAlmostEqual(pair["devices"][0]["ridge"], 40 / 15)
        self.assertEqual(pair["compute_bound"][1], 0)  # no cell has 90 FLOPs for each byte
        self.assertEqual(pair["srcc"], result["srcc"][0][2])
        text = page.read_text()
        for words in ("<svg", "phone and board", "What bounds the designs".lower(), "Proxies"):
            self.assertIn(words, text if words != "what bounds the designs" else text.lower())

    def test_takes_peaks_from_a_probe(self):
        probe = self.folder / "probe.json"
        probe.write_text(json.dumps({"features": {"peak_fp32_gflop_per_s": 100, "memory_read_gb_per_s": 20}}))
        result = self.succeed_json(*self.verb("srcc", "--peak", f"phone={probe}", "--peak", "board=50,20"))
        self.assertEqual(result["rooflines"][0]["devices"][0]["ridge"], 5)


class Estimate(TransferCase):
    def test_tells_spread_and_how_many_are_enough(self):
        result = self.succeed_json(*self.verb("estimate", "--pair", "phone,board", "--samples", 40, "--trials", 300))
        low, high = result["ci95"]
        self.assertTrue(low < result["mean"] < high)
        self.assertAlmostEqual(result["mean"], result["srcc"], delta=0.05)
        self.assertGreater(result["std"], 0)
        self.assertLess(result["enough_samples"], 60)

    def test_does_not_depend_on_threads(self):
        one, two = (self.succeed_json("--threads", n, *self.verb("estimate", "--pair", "phone,board", "--samples", 20, "--trials", 100)) for n in (1, 3))
        self.assertEqual(one, two)


class Select(TransferCase):
    def test_ranks_proxies_and_covers_all_devices(self):
        for samples in ([], ["--samples", 50]):
            result = self.succeed_json(*self.verb("select", *samples))
            self.assertIn(result["proxy"], ("phone", "twin"))
            self.assertEqual(result["ranking"][-1]["device"], "board")
            self.assertEqual(sorted(map(len, (m["devices"] for m in result["pool"]))), [1, 2])


class Adapt(TransferCase):
    def adapt(self, target, *args):
        return self.verb("adapt", "--proxy", "phone", "--target", target, "--samples", 30, "--validation", 15, *args)

    def test_makes_an_order_of_the_target_and_names_what_changed(self):
        file = self.folder / "board.json"
        result = self.succeed_json(*self.adapt("board", "--trials", 3, "-o", file))
        self.assertLess(result["srcc_before"], 0.6)
        self.assertGreater(result["srcc_after"], 0.98)
        self.assertEqual([t["seed"] for t in result["trials"]], [1, 2, 3])
        self.assertAlmostEqual(result["srcc_after"], sum(t["srcc_after"] for t in result["trials"]) / 3)
        self.assertIn("avg-pool3x3", " ".join(change["name"] for change in result["changed_operators"][:3]))
        written = json.loads(file.read_text())
        self.assertEqual((written["proxy"], written["target"], written["space"], written["measurements"]), ("phone", "board", "nasbench201", 45))

    def test_keeps_a_proxy_that_agrees(self):
        result = self.succeed_json(*self.adapt("twin"))
        self.assertTrue(result["trials"][0]["kept_proxy"])
        self.assertAlmostEqual(result["alpha"], 3, delta=0.05)
        self.assertEqual(result["changed_operators"], [])
        self.assertIn("kept as it is", self.succeed(*self.adapt("twin")).stdout)

    def test_does_not_depend_on_threads(self):
        one, two = (self.succeed_json("--threads", n, *self.adapt("board", "--trials", 4)) for n in (1, 3))
        self.assertEqual(one, two)

    def test_file_is_a_source_of_searches_in_its_space_alone(self):
        file = self.folder / "board.json"
        self.succeed(*self.adapt("board", "-o", file))
        quality = self.write(self.rows, ("accuracy",), "quality.csv")
        found = self.succeed_json("search", "--space", "nasbench201", "--latency", f"adapted:{file}", "--accuracy", f"table:{quality}#accuracy",
                                  "--budget-ms", 8, "--strategy", "exhaustive")
        best = max(worth(r["ops"]) for r in self.rows if r["board"] <= 8)
        self.assertGreaterEqual(found["best"]["accuracy"], best - 2)
        self.refuse("search", "--space", "fbnet", "--latency", f"adapted:{file}", "--accuracy", f"table:{quality}#accuracy", "--budget-ms", 8,
                    naming="made for the space nasbench201")


class Run(TransferCase):
    def run_verb(self, target, *args):
        quality = self.write(self.rows, ("accuracy",), "quality.csv")
        return self.verb("run", "--proxy", "phone", "--target", target, "--accuracy", f"table:{quality}#accuracy", *args)

    def test_adapts_searches_measures_and_drops_what_is_dominated(self):
        result = self.succeed_json(*self.run_verb("board", "--samples", 20))
        self.assertEqual(result["decision"], "adapt")
        self.assertTrue(result["reaches_threshold"])
        latency = {r["ops"]: r["board"] for r in self.rows}
        front = [(p["latency_ms"], p["accuracy"]) for p in result["pareto"]]
        self.assertEqual(front, sorted(front))
        self.assertEqual([a for _, a in front], sorted({a for _, a in front}))
        self.assertTrue(all(abs(p["latency_ms"] - latency[p["design"]]) < 1e-9 for p in result["pareto"]))
        found = result["measurements"] - result["steps"][-1]["samples"]
        self.assertGreaterEqual(found, result["dropped"])
        self.assertLessEqual(found - result["dropped"], len(front))  # a sample may be on the front, too

    def test_reuses_a_proxy_that_agrees(self):
        result = self.succeed_json(*self.run_verb("twin"))
        self.assertEqual((result["decision"], len(result["steps"]), result["dropped"]), ("reuse", 1, 0))

    def test_ends_with_status_1_if_the_threshold_is_not_reached(self):
        noise = random.Random(2)
        for r in self.rows:
            r["board"] = noise.uniform(1, 2)
        self.write(self.rows)
        outcome = cli.run(*self.run_verb("board", "--samples", 20, "--max-samples", 30), "--json")
        self.assertEqual(outcome.status, 1, outcome)
        self.assertFalse(self.parse_json(outcome)["reaches_threshold"])


class BadInput(TransferCase):
    def test_is_named(self):
        self.refuse(*self.verb("srcc", "--devices", "phone,tablet"), naming="tablet")
        self.refuse("transfer", "srcc", self.table, "--space", "nasbench301", naming="nasbench301")
        self.refuse(*self.verb("srcc", table=self.folder / "none.csv"), naming="none.csv")
        self.refuse(*self.verb("srcc", "--peak", "phone=fast"), naming="phone=fast")
        self.refuse(*self.verb("estimate", "--pair", "phone,phone", "--samples", 9), naming="named twice")
        self.refuse(*self.verb("estimate", "--pair", "phone,board", "--samples", 9999), naming="9999 samples")
        self.refuse(*self.verb("select", "--samples", 9999), naming="9999 samples")
        adapt = ["--proxy", "phone", "--target", "board"]
        self.refuse(*self.verb("adapt", *adapt, "--samples", 1490), naming="1510 samples were asked for, but there are 1500")
        self.refuse(*self.verb("adapt", *adapt, "--samples", 1), naming="1 samples")
        self.refuse(*self.verb("run", "--proxy", "phone", "--target", "board", "--accuracy", "table:x"), naming="table:x")

    def test_in_a_table_is_named_with_its_place(self):
        for change, words in ((("board", "nan"), "nan"), (("board", "-3"), "-3"), (("ops", "00000"), "table.csv:4"), (("ops", self.rows[0]["ops"]), "second time")):
            with self.subTest(change=change):
                rows = [dict(r) for r in self.rows[:20]]
                rows[2][change[0]] = change[1]
                self.refuse(*self.verb("srcc", table=self.write(rows)), naming=words)

    def test_of_a_constant_column_names_the_device(self):
        for r in self.rows:
            r["board"] = 5
        table = self.write(self.rows)
        for verb in (["srcc"], ["estimate", "--pair", "phone,board", "--samples", 9], ["select"],
                     ["adapt", "--proxy", "phone", "--target", "board", "--samples", 30], ["adapt", "--proxy", "board", "--target", "phone", "--samples", 30]):
            self.refuse(*self.verb(*verb, table=table), naming="'board'")


class Help(cli.Case):
    def test_of_every_verb_shows_an_example(self):
        for verb in ("srcc", "estimate", "select", "adapt", "run"):
            self.assertIn(f"fleetfit transfer {verb}", self.succeed("transfer", verb, "--help").stdout)


cli.main()
