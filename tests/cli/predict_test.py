"""fleetfit predict train, run and eval."""
import json
import sqlite3

import cli

QUICK = ["--max-time", "0.1"]
KNOWN = {"mobilenet": ("mobilenet_v2", "--width", "0.25", "--image", "32"), "eight": ("resnet8",), "twenty": ("resnet20", "--width", "0.5"),
         "small": ("mobilenet_v2_small", "--width", "0.5")}
UNKNOWN = ("squeezenet1_1", "--image", "64")


class PredictCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.store = ["--store", f"sqlite:{self.folder}/store.db"]
        self.predictor = self.folder / "predictor.json"

    def zoo(self, name, *args):
        file = self.folder / f"{name}.onnx"
        self.succeed("model", "zoo", *args, "-o", file)
        return file

    def known(self):
        return [self.zoo(name, *args) for name, args in KNOWN.items()]

    def train(self, *args):
        return self.succeed_json(*self.store, "--quiet", "predict", "train", "--device", "local", *args, "-o", self.predictor)

    def run_predictor(self, *args):
        return self.succeed_json("predict", "run", self.predictor, *args)


class Tables(PredictCase):
    """Predictors of whole networks, from a table of cells whose times add up."""

    COSTS = {"0": 0.0, "1": 0.1, "2": 1.5, "3": 4.0, "4": 0.7}

    def table(self):
        cells = ["".join(str(i // 5**k % 5) for k in range(6)) for i in range(0, 15625, 89)]
        rows = [f"{cell},{3 + sum(self.COSTS[op] * (1 + 0.2 * k) for k, op in enumerate(cell)):.4f}," for cell in cells]
        file = self.folder / "cells.csv"
        file.write_text("\n".join(["ops,phone,other", *rows]) + "\n")
        return file, cells

    def train_on(self, table, *args):
        return self.succeed_json("predict", "train", "--table", f"{table}#phone", "--space", "nasbench201", *args, "-o", self.predictor)

    def test_a_column_makes_a_predictor_that_is_held_against_the_rest_of_it(self):
        table, cells = self.table()
        trained = self.train_on(table, "--samples", "100", "--method", "linear")
        self.assertEqual((trained["device"], trained["networks"], trained["reads"], trained["missing"]), ("phone", 100, "genes", 0))
        result = self.succeed_json("predict", "eval", self.predictor, "--table", f"{table}#phone")
        self.assertEqual((result["models"], result["left_out"]), (len(cells) - 100, 100))
        self.assertLess(result["mape"], 0.1)
        self.assertGreater(result["srcc"], 0.999)
        [one] = self.succeed_json("predict", "run", self.predictor, "--design", "333333")
        self.assertAlmostEqual(one["latency_ms"], 3 + 4 * (6 + 0.2 * 15), delta=0.05)
        self.assertEqual(one["source"], "predicted")
        self.assertIn("333333", self.succeed("predict", "run", self.predictor, "--design", "333333").stdout)

    def test_bad_tables_are_named(self):
        table, _ = self.table()
        train = ("predict", "train", "--space", "nasbench201", "-o", self.predictor, "--table")
        self.refuse(*train, str(table), naming="--table: '")
        self.refuse(*train, f"{table}#tablet", naming="tablet")
        self.refuse(*train, f"{table}#other", naming="too few to learn from")
        self.refuse(*train, f"{table}#phone", "--samples", "9999", naming="column phone has 176 numbers, 9999 are asked for")
        self.refuse(*train, f"{table}#phone", "--method", "gbdt", naming="'gbdt' is no method")
        self.train_on(table)
        self.refuse("predict", "run", self.predictor, "--design", "33333", naming="design '33333'")
        self.refuse("predict", "eval", self.predictor, "--table", f"{table}#phone", naming="was trained with all designs")


class Train(PredictCase):
    def test_files_are_measured_once_and_make_a_predictor(self):
        files = self.known()
        trained = self.train("--method", "lasso", *QUICK, *files)
        self.assertEqual((trained["device"], trained["method"], trained["networks"]), ("local", "lasso", len(KNOWN)))
        self.assertTrue(all(kind["share"] > 0 and kind["samples"] > 0 for kind in trained["per_type"]))
        before = self.measurements()
        self.train("--method", "gbdt", *QUICK, *files)
        self.assertEqual(self.measurements(), before)

    def test_designs_of_a_space_are_measured_where_missing_and_tested_on_others(self):
        self.train("--method", "lasso", "--space", "icpe", "--samples", "3", *QUICK)
        page = self.folder / "page.html"
        result = self.succeed_json(*self.store, "--quiet", "predict", "eval", self.predictor, "--space", "icpe", "--samples", "2", *QUICK, "--plot", page)
        self.assertEqual([network["model"] for network in result["networks"]], ["design 3", "design 4"])
        result = self.succeed_json(*self.store, "--quiet", "predict", "eval", self.predictor, "--space", "icpe", "--samples", "3", "--first", "2", *QUICK)
        self.assertEqual([network["model"] for network in result["networks"]], ["design 3", "design 4"])
        self.assertIn("design 2: the predictor was trained with it", result["left_out"])
        self.assertEqual(self.networks(), 5)
        for words in ("Predicted latency on local", "Error by kind of kernel", "What prices depend on", "What to measure next"):
            self.assertIn(words, page.read_text())

    def test_what_was_measured_elsewhere_makes_a_predictor_where_the_device_is_not(self):
        self.succeed(*self.store, "device", "add", "board", "--runtime", "xnnpack")
        known, other = self.known(), self.zoo("other", *UNKNOWN)
        for what in (known, ["--space", "icpe", "--samples", "3"]):
            measured = cli.run(*self.store, "--quiet", "measure", "--device", "board", "--ops", *QUICK, *what)
            self.assertIn(measured.status, (0, 1), measured)
        self.move_to_another_machine("board")
        train = [*self.store, "predict", "train", "--device", "board", "--method", "lasso", "-o", self.predictor]
        self.refuse(*train, *known, naming="another device")
        trained = self.succeed_json(*train, "--stored", *known[:3], other)
        self.assertEqual((trained["device"], trained["networks"]), ("board", 3))
        self.assertEqual(trained["left_out"], [f"{other}: the store has no profile of it on board"])
        result = self.succeed_json(*self.store, "predict", "eval", self.predictor, "--stored", *known)
        self.assertEqual([network["model"] for network in result["networks"]], [str(known[3])])
        trained = self.succeed_json(*train, "--stored", "--space", "icpe", "--samples", "4")
        self.assertEqual((trained["networks"], trained["left_out"]), (3, ["1 of 4 designs: the store has no profile of them on board"]))
        self.refuse(*train, "--stored", other, naming=f"no networks to learn from: {other}: the store has no profile of it on board")
        self.refuse(*self.store, "predict", "eval", self.predictor, "--stored", other, naming=f"no networks to test on: {other}: the store has no profile")
        self.refuse("predict", "train", "--table", "t.csv#x", "--stored", "-o", self.predictor, naming="--table excludes --stored")

    def move_to_another_machine(self, device):
        with sqlite3.connect(self.folder / "store.db") as store:
            store.execute("UPDATE devices SET fingerprint = 'elsewhere' WHERE name = ?", (device,))
            store.execute("UPDATE measurements SET device_fingerprint = 'elsewhere' WHERE device = ?", (device,))

    def measurements(self):
        with sqlite3.connect(self.folder / "store.db") as store:
            return store.execute("SELECT count(*) FROM measurements").fetchone()[0]

    def networks(self):
        with sqlite3.connect(self.folder / "store.db") as store:
            return store.execute("SELECT count(DISTINCT model_hash) FROM measurements").fetchone()[0]


class Run(PredictCase):
    def setUp(self):
        super().setUp()
        self.files = self.known()
        self.train("--method", "lasso", *QUICK, *self.files)

    def test_operators_and_overhead_add_up_and_none_is_free(self):
        for model in self.run_predictor(*self.files, self.zoo("other", *UNKNOWN)):
            self.assertLessEqual({"model", "latency_ms", "interval90", "overhead_ms", "ops", "unpriced"}, set(model))
            total = model["overhead_ms"] + sum(op["latency_ms"] for op in model["ops"])
            self.assertAlmostEqual(total, model["latency_ms"], delta=1e-9 * total)
            self.assertTrue(all(op["latency_ms"] > 0 for op in model["ops"]))
            low, high = model["interval90"]
            self.assertTrue(0 < low <= model["latency_ms"] <= high)

    def test_kernels_that_were_never_seen_are_listed_with_a_reason(self):
        (model,) = self.run_predictor(self.zoo("other", *UNKNOWN))
        concats = [one for one in model["unpriced"] if one["kernel"] == "concat"]
        self.assertTrue(concats)
        self.assertTrue(all(one["reason"] for one in model["unpriced"]))

    def test_networks_of_the_training_are_no_test(self):
        other = self.zoo("other", *UNKNOWN)
        result = self.succeed_json(*self.store, "--quiet", "predict", "eval", self.predictor, *QUICK, other, self.files[0])
        self.assertEqual([network["model"] for network in result["networks"]], [str(other)])
        self.assertEqual(result["models"], 1)
        self.assertIn("trained with it", result["left_out"][0])
        self.assertLessEqual({"models", "mape", "within_5pct", "within_10pct", "coverage90", "per_type"}, set(result))

    def test_a_predictor_of_another_device_is_refused_by_name(self):
        self.succeed(*self.store, "device", "add", "two", "--threads", "2")
        self.refuse(*self.store, "predict", "run", self.predictor, self.files[0], "--device", "two", naming="two")

    def test_a_damaged_file_is_refused_with_its_place(self):
        document = json.loads(self.predictor.read_text())
        document["identity"]["precision"] = "fp12"
        self.predictor.write_text(json.dumps(document))
        self.refuse("predict", "run", self.predictor, self.files[0], naming="fp12")
        self.predictor.write_text(self.predictor.read_text()[:200])
        self.refuse("predict", "run", self.predictor, self.files[0], naming=str(self.predictor))


class Spec(PredictCase):
    def test_a_roofline_prices_by_its_rates(self):
        model = self.zoo("net", "mobilenet_v2")
        self.succeed("predict", "spec", "board", "--gflops", "30", "--gbytes", "1e6", "--kernel-us", "0", "-o", self.predictor)
        (price,) = self.run_predictor(model)
        gflops = self.succeed_json("model", "inspect", model)["totals"]["flops"] / 1e9
        self.assertAlmostEqual(price["latency_ms"], 1e3 * gflops / 30, delta=0.01 * price["latency_ms"])
        self.assertEqual((price["device"], price["source"]), ("board", "predicted"))

    def test_accelerators_of_the_literature_differ(self):
        model = self.zoo("net", "mobilenet_v2")
        times = set()
        for number in (1, 9):
            self.succeed("predict", "spec", "fpga", "--accelerator", f"zcu102-{number}", "-o", self.predictor)
            times.add(self.run_predictor(model)[0]["latency_ms"])
        self.assertEqual(len(times), 2)

    def test_refuses_what_makes_no_device(self):
        self.refuse("predict", "spec", "board", "-o", self.predictor, naming="--gflops")
        self.refuse("predict", "spec", "board", "--gflops", "0", "--gbytes", "1", "-o", self.predictor, naming="gflops")
        self.refuse("predict", "spec", "board", "--accelerator", "mine", "-o", self.predictor, naming="zcu102-1")
        self.refuse("predict", "spec", "board", "--gflops", "1", "--gbytes", "1", "--rules", "mine", "-o", self.predictor, naming="mine")
        self.assertFalse(self.predictor.exists())


class BadInput(PredictCase):
    def test_names_what_is_wrong(self):
        def train(*args):
            return [*self.store, "predict", "train", "--device", "local", "-o", self.predictor, *args]

        self.refuse(*train("--method", "magic", "--space", "icpe", "--samples", "3"), naming="--method")
        self.refuse(*train("--space", "icpe"), naming="--samples")
        self.refuse(*train("--space", "nowhere", "--samples", "3"), naming="nowhere")
        self.refuse(*train(), naming="network")
        self.refuse(*self.store, "predict", "train", "--device", "local", "--space", "icpe", "--samples", "3",
                    "-o", self.folder / "missing" / "p.json", naming="missing")
        self.assertFalse(self.predictor.exists())


if __name__ == "__main__":
    cli.main()
