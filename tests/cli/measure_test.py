"""fleetfit measure and measure export."""
import csv
import signal
import subprocess
import time

import cli

RESULT_KEYS = {"model", "device", "status", "reason", "latency_ms", "runs", "overhead_ms", "peak_memory_bytes", "energy_mj"}
LATENCY_KEYS = {"median", "mean", "p90", "p99", "ci95"}
QUICK = ["--max-time", "1", "--target-ci", "100"]


class MeasureCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.store = ["--store", f"sqlite:{self.folder}/store.db"]
        self.model = self.folder / "net.onnx"
        self.succeed("model", "zoo", "mobilenet_v2", "--width", "0.25", "--image", "32", "-o", self.model)

    def measure(self, *args):
        """What was measured, stable or not."""
        outcome = cli.run(*self.store, "measure", *args, "--json")
        results = self.parse_json(outcome)
        good = all(result["status"] == "ok" for result in results)
        self.assertEqual(outcome.status, 0 if good else 1, outcome)
        self.assertRegex(outcome.stderr, r"\A\Z" if good else r"\Afleetfit: [^\n]+\n\Z")
        return results

    def rows(self, *args):
        table = self.folder / "table.csv"
        self.succeed(*self.store, "measure", "export", "-o", table, *args)
        with open(table, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


class Measure(MeasureCase):
    def test_gives_the_contracts_keys_and_a_plausible_order_of_numbers(self):
        (result,) = self.measure(self.model, *QUICK)
        self.assertLessEqual(RESULT_KEYS, set(result))
        self.assertNotIn("ops", result)
        self.assertEqual((result["model"], result["device"]), (str(self.model), "local"))
        latency = result["latency_ms"]
        self.assertLessEqual(LATENCY_KEYS, set(latency))
        low, high = latency["ci95"]
        self.assertTrue(0 < low <= latency["median"] <= high and latency["median"] <= latency["p90"] <= latency["p99"], latency)
        self.assertGreater(result["runs"], 0)
        self.assertGreater(result["peak_memory_bytes"], 1 << 20)

    def test_tells_operators_when_asked(self):
        (result,) = self.measure(self.model, "--ops", *QUICK)
        self.assertGreater(len(result["ops"]), 20)
        for operator in result["ops"]:
            self.assertLessEqual({"name", "type", "kernel", "latency_ms"}, set(operator))
        self.assertGreaterEqual(result["overhead_ms"], 0)

    def test_several_models_and_devices_come_in_order_with_ratios(self):
        self.succeed(*self.store, "device", "add", "slow", "--runtime", "reference")
        other = self.folder / "other.onnx"
        self.succeed("model", "zoo", "resnet20", "--width", "0.25", "-o", other)
        results = self.measure(self.model, other, "--device", "local", "--device", "slow", *QUICK)
        self.assertEqual([(r["model"], r["device"]) for r in results],
                         [(str(m), d) for m in (self.model, other) for d in ("local", "slow")])
        for local, slow in zip(results[0::2], results[1::2]):
            self.assertNotIn("against_first", local)
            self.assertGreater(slow["against_first"]["ratio"], 1)  # the interpreter is slower by orders of magnitude

    def test_a_float_model_is_quantized_for_int8(self):
        self.succeed(*self.store, "device", "add", "eight", "--precision", "int8")
        (result,) = self.measure(self.model, "--device", "eight", *QUICK)
        self.assertNotEqual(result["status"], "failed", result["reason"])
        self.assertTrue(any("quantized" in note for note in result["notes"]), result["notes"])

    def test_a_runtime_that_dies_is_a_failed_measurement(self):
        self.succeed(*self.store, "device", "add", "weak", "--runtime", f"exec:'{cli.program()}' runtime")
        broken = self.folder / "unknown.onnx"
        self.write_model_with_unknown_operator(broken)
        outcome = cli.run(*self.store, "measure", broken, "--json", *QUICK)
        (result,) = self.parse_json(outcome)
        self.assertEqual((outcome.status, result["status"], result["latency_ms"]), (1, "failed", None))
        self.assertIn("Mystery", result["reason"])

    def write_model_with_unknown_operator(self, file):
        # ir_version 8, opset 17, graph: y = Mystery(x), x and y float[1]
        def field(number, payload):
            return bytes([number << 3 | 2, len(payload)]) + payload

        tensor_type = field(1, b"\x08\x01" + field(2, field(1, b"\x08\x01")))
        value = lambda name: field(1, name) + field(2, tensor_type)
        node = field(1, b"x") + field(2, b"y") + field(3, b"odd") + field(4, b"Mystery")
        graph = field(1, node) + field(2, b"g") + field(11, value(b"x")) + field(12, value(b"y"))
        file.write_bytes(b"\x08\x08" + field(7, graph) + field(8, b"\x10\x11"))

    def test_says_it_to_people_too(self):
        outcome = cli.run(*self.store, "measure", self.model, "--ops", *QUICK)
        self.assertIn("median ms", outcome.stdout)
        self.assertIn("operators", outcome.stdout)

    def test_kernel_choices_are_found_once(self):
        self.measure(self.model, *QUICK)
        size = self.count("kernel_choices")
        self.assertGreater(size, 0)
        self.measure(self.model, *QUICK)
        self.assertEqual(self.count("kernel_choices"), size)

    def count(self, table):
        import sqlite3
        with sqlite3.connect(self.folder / "store.db") as connection:
            return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]

    def test_refuses_before_it_measures(self):
        for naming, *flags in [
            ("FILE",), ("missing.onnx", self.folder / "missing.onnx"), ("missing.onnx", self.model, self.folder / "missing.onnx"),
            ("nosuch", self.model, "--device", "nosuch"), ("twice", self.model, "--device", "local", "--device", "local"),
            ("--max-time", self.model, "--max-time", "0"), ("--max-time", self.model, "--max-time", "soon"),
            ("--target-ci", self.model, "--target-ci", "-1"), ("--target-ci", self.model, "--target-ci", "1000"),
            ("--space", self.model, "--space", "nasbench201"), ("--dim", self.model, "--dim", "N"),
        ]:
            with self.subTest(flags=flags):
                self.refuse(*self.store, "measure", *flags, naming=naming)

    def test_stops_when_interrupted_and_keeps_what_was_finished(self):
        self.measure(self.model, *QUICK)
        command = [cli.program(), *self.store, "measure", self.model, self.model, "--max-time", "600", "--target-ci", "0.01", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
            time.sleep(2)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        self.assertEqual((process.returncode, stderr), (1, "fleetfit: 1 of 2 were measured\n"))
        (result,) = self.parse_json(cli.Outcome("", 1, stdout, stderr))
        self.assertEqual((result["status"], result["reason"]), ("failed", "cancelled"))
        self.assertEqual(self.count("measurements"), 1)


class Space(cli.Case):
    BRIEF = ["--max-time", "0.05", "--target-ci", "100"]

    def setUp(self):
        super().setUp()
        self.store = ["--store", f"sqlite:{self.folder}/store.db"]

    def measure(self, *args):
        outcome = cli.run(*self.store, "measure", "--space", "icpe", *self.BRIEF, *args, "--json")
        self.assertIn(outcome.status, (0, 1), outcome)
        self.assertRegex(outcome.stderr, r"\A\Z" if outcome.status == 0 else r"\Afleetfit: design [^\n]+\n\Z", outcome)
        return self.parse_json(outcome)

    def test_measures_designs_and_goes_on_where_it_was(self):
        first = self.measure("--samples", 2)
        self.assertEqual([(r["space"], r["number"], r["device"], r["known"]) for r in first],
                         [("icpe", 0, "local", False), ("icpe", 1, "local", False)])
        for result in first:
            self.assertLessEqual(RESULT_KEYS, set(result))
            self.assertLessEqual(LATENCY_KEYS, set(result["latency_ms"]))
            self.assertEqual(result["design"].count("/"), 10)
            self.assertNotIn("ops", result)
        more = self.measure("--samples", 3)
        self.assertEqual([r["known"] for r in more], [True, True, False])
        self.assertEqual([r["latency_ms"] for r in more[:2]], [r["latency_ms"] for r in first])
        table = self.folder / "t.csv"
        self.succeed(*self.store, "measure", "export", "--space", "icpe", "-o", table)
        with open(table, newline="", encoding="utf-8") as file:
            rows = {row["design"]: float(row["local"]) for row in csv.DictReader(file)}
        self.assertEqual(rows, {r["design"]: r["latency_ms"]["median"] for r in more})

    def test_tells_operators_when_asked(self):
        (result,) = self.measure("--samples", 1, "--first", 3, "--ops")
        self.assertEqual(result["number"], 3)
        self.assertGreater(len(result["ops"]), 10)

    def test_killed_work_loses_no_finished_design(self):
        command = [cli.program(), *self.store, "measure", "--space", "icpe", "--samples", "50", "--sessions", "1", *self.BRIEF, "--json"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and self.kept() < 2:
                time.sleep(0.05)
            process.kill()
        finished = self.kept()
        self.assertTrue(2 <= finished < 50, finished)
        results = self.measure("--samples", finished + 1, "--sessions", 1)
        self.assertEqual([r["known"] for r in results], [True] * finished + [False])

    def test_interrupted_work_gives_what_is_there(self):
        command = [cli.program(), *self.store, "measure", "--space", "icpe", "--samples", "500", *self.BRIEF, "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
            while process.poll() is None and self.kept() < 1:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        results = self.parse_json(cli.Outcome("", 1, stdout, stderr))
        self.assertEqual((process.returncode, stderr, len(results)), (1, f"fleetfit: {self.kept()} of 500 were measured\n", self.kept()))
        self.assertTrue(all(r["status"] != "failed" for r in results))

    def kept(self):
        import sqlite3
        try:
            with sqlite3.connect(f"file:{self.folder}/store.db?mode=ro", uri=True) as connection:
                return connection.execute("SELECT count(*) FROM measurements").fetchone()[0]
        except sqlite3.OperationalError:  # not there yet
            return 0

    def test_says_beforehand_how_long_it_takes(self):
        outcome = cli.run(*self.store, "measure", "--space", "icpe", "--samples", 1, "--sessions", 1, *self.BRIEF)
        self.assertRegex(outcome.stderr, r"\A1 of 1 measurements are to be made; this takes [^\n]+\n(fleetfit: design [^\n]+\n)?\Z")
        outcome = cli.run(*self.store, "measure", "--space", "icpe", "--samples", 1, "--first", 1, *self.BRIEF)
        self.assertRegex(outcome.stderr, r"\A8 of 8 measurements are to be made, or as many as it takes for two to agree; this takes [^\n]+\n")
        self.assertIn("measured before", outcome.stdout)

    def test_refuses_before_it_measures(self):
        for naming, *flags in [
            ("nosuch", "--space", "nosuch", "--samples", "1"), ("--samples", "--space", "icpe"),
            ("--samples", "--space", "icpe", "--samples", "0"), ("--samples", "--samples", "3"),
            ("--batch", "--space", "icpe", "--samples", "1", "--batch", "2"),
            ("nosuch", "--space", "icpe", "--samples", "1", "--device", "nosuch"),
            ("icpe", "export", "--space", "icpe", "-o", self.folder / "t.csv"),
            ("nosuch", "export", "--space", "nosuch", "-o", self.folder / "t.csv"),
        ]:
            with self.subTest(flags=flags):
                self.refuse(*self.store, "measure", *flags, naming=naming)


class OnnxRuntime(MeasureCase):
    def test_is_measured_in_turns_with_the_engine(self):
        cli.need_onnxruntime(self)
        self.succeed(*self.store, "device", "add", "ort", "--runtime", "onnxruntime")
        ours, theirs = self.measure(self.model, "--device", "local", "--device", "ort", "--ops", *QUICK)
        self.assertNotEqual((ours["status"], theirs["status"]), ("failed", "failed"))
        self.assertGreater(theirs["against_first"]["rounds"], 0)
        self.assertGreater(len(theirs["ops"]), 5)


class Export(MeasureCase):
    def test_has_a_row_for_each_model_and_a_column_for_each_device(self):
        self.succeed(*self.store, "device", "add", "two", "--threads", "2")
        other = self.folder / "other.onnx"
        self.succeed("model", "zoo", "resnet20", "--width", "0.25", "-o", other)
        wide = ["--max-time", "20", "--target-ci", "100"]
        both = self.measure(self.model, "--device", "local", "--device", "two", *wide)
        (single,) = self.measure(other, *wide)
        if any(result["status"] != "ok" for result in (*both, single)):
            self.skipTest("the machine is too busy for a good measurement")
        rows = self.rows()
        self.assertEqual([row["model"] for row in rows], ["net", "other"])
        self.assertEqual(list(rows[0]), ["model", "hash", "local", "two"])
        self.assertEqual(float(rows[0]["local"]), both[0]["latency_ms"]["median"])
        self.assertEqual(float(rows[0]["two"]), both[1]["latency_ms"]["median"])
        self.assertEqual(float(rows[1]["local"]), single["latency_ms"]["median"])
        self.assertEqual(rows[1]["two"], "")

    def test_refuses_what_it_cannot_write(self):
        self.refuse(*self.store, "measure", "export", naming="--output")
        self.refuse(*self.store, "measure", "export", "-o", self.folder / "t.csv", naming="measurement")
        self.refuse(*self.store, "measure", self.model, "export", "-o", self.folder / "t.csv", naming="./export")
        self.assertFalse((self.folder / "t.csv").exists())


if __name__ == "__main__":
    cli.main()
