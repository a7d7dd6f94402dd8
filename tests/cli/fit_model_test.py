"""fleetfit fit on a model's fleet: an elastic model that was never trained, devices of this machine."""
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import tempfile
import time

import cli
import tiny_bundle


# Every network takes 2 ms and 50 MB.
EVEN_RUNTIME = """
import json, sys, time
for line in sys.stdin:
    request = json.loads(line)
    reply = {"id": request["id"], "ok": True}
    if request["op"] == "info":
        reply |= {"protocol": 1, "name": "even", "version": "1", "build": "test"}
    if request["op"] == "run":
        time.sleep(0.002 * request["runs"])
        reply |= {"times_ms": [2.0] * request["runs"], "peak_memory_bytes": 50_000_000}
    print(json.dumps(reply), flush=True)
"""


class FitCase(cli.Case):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="fleetfit-fit-")
        cls.addClassCleanup(temporary.cleanup)
        cls.shared = pathlib.Path(temporary.name)
        cls.shown = tiny_bundle.make(cls.shared)

    def fleet(self, devices, head=""):
        file = self.folder / "tiny.yaml"
        file.write_text(f"bundle: {self.shared}/net.ffb\ndata: idx:{self.shared}\nsearch_images: 20\nmeasure_s: 0.1\nmeasurements: 4\n"
                        f"confirmations: 2\n{head}devices:\n" + "".join(f"  - {line}\n" for line in devices))
        return file

    def command(self, fleet, *flags):
        return ["--store", f"sqlite:{self.folder}/store.db", "fit", fleet, "-o", self.folder / "out", "--json", "--quiet", *flags]

    def fit(self, fleet, *flags, status=0):
        outcome = cli.run(*self.command(fleet, *flags))
        self.assertEqual(outcome.status, status, outcome)
        return self.parse_json(outcome)


class Fit(FitCase):
    def test_every_device_gets_a_network_that_runs_and_a_pool(self):
        report = self.fit(self.fleet(["{name: one, budget: {latency: 500%}}", "{name: small, precision: int8, budget: {latency: 900 ms, memory: 4000 MB}}"]),
                          "--share-within", "100")
        one, small = report["devices"]
        self.assertEqual((one["state"], small["state"]), ("fitted", "fitted"))
        self.assertAlmostEqual(one["budgets"][0]["limit"], 5 * one["original"]["latency_ms"]["measured"])
        self.assertLessEqual(one["best"]["latency_ms"]["measured"], one["budgets"][0]["limit"])
        self.assertLessEqual(one["measurements"], 6 + report["shared"]["measurements"])
        for device in report["devices"]:
            folder = self.folder / "out/devices" / device["device"]
            pool = json.loads((folder / "pool.json").read_text())
            self.assertEqual((pool["best"], pool["bundle_sha256"]), (device["best"]["design"], self.shown["manifest_sha256"]))
            self.succeed("model", "run", folder / "model.onnx", "--random-inputs", "-o", self.folder / "outputs")
        self.assertEqual(sum(len(model["devices"]) for model in report["shared"]["models"]), 2)
        account = report["account"]
        self.assertLess(account["measurements"], account["alone"]["measurements"])

    def test_device_on_which_everything_costs_the_same_gets_a_network(self):
        runtime = self.folder / "even.py"
        runtime.write_text(EVEN_RUNTIME)
        report = self.fit(self.fleet([f"{{name: even, runtime: 'exec:python3 {runtime}', budget: {{latency: 3 ms, memory: 64 MB}}}}"]))
        best = report["devices"][0]["best"]
        self.assertEqual((best["latency_ms"]["measured"], best["memory_mb"]["measured"]), (2, 50))
        device = self.fit(self.fleet([f"{{name: even, runtime: 'exec:python3 {runtime}', budget: {{latency: 3 ms, memory: 49 MB}}}}"]), status=1)["devices"][0]
        self.assertEqual((device["state"], device["nearest"]["memory_mb"]["measured"]), ("unreachable", 50))

    def test_second_run_tells_what_the_store_holds(self):
        fleet = self.fleet(["{name: one, budget: {latency: 500%}}"])
        first = self.fit(fleet)
        second = self.fit(fleet)
        self.assertEqual(second["devices"], first["devices"])
        with sqlite3.connect(self.folder / "store.db") as store:
            store.execute("UPDATE measurements SET median_ms = 0.000123456 WHERE design = ?", (first["devices"][0]["best"]["design"],))
        store.close()
        third = self.fit(fleet)["devices"][0]
        changed = [point for point in third["measured"] if point["latency_ms"]["measured"] == 0.000123456]
        self.assertEqual(len(changed), 1)
        self.assertIn("0.0001235", (self.folder / "out/report.html").read_text())

    def test_budget_that_cannot_be_kept_tells_the_nearest(self):
        device = self.fit(self.fleet(["{name: one, budget: {latency: 0.000001 ms}}"]), status=1)["devices"][0]
        self.assertEqual((device["state"], device["best"]), ("unreachable", None))
        self.assertGreater(device["nearest"]["latency_ms"]["measured"], 0.000001)
        self.assertFalse((self.folder / "out/devices/one/model.onnx").exists())

    def test_device_known_by_a_table_alone_is_predicted(self):
        self.fit(self.fleet(["{name: one, budget: {latency: 500%}}"]))
        table = next((self.folder / "out").glob("table-*.json"))
        device = self.fit(self.fleet([f"{{name: phone, latency: \"table:{table}\", budget: {{latency: 900}}}}"]))["devices"][0]
        self.assertEqual((device["state"], device["measurements"]), ("predicted", 0))
        low, high = device["best"]["latency_ms"]["interval90"]
        self.assertLessEqual(low, device["best"]["latency_ms"]["expected"])
        self.assertLessEqual(high, 900)

    def test_device_known_by_a_predictor_alone_is_predicted(self):
        models = [self.folder / f"{name}.onnx" for name in ("resnet8", "resnet20", "mobilenet_v2_small")]
        for model in models:
            self.succeed("model", "zoo", model.stem, "--width", "0.5", "-o", model)
        predictor = self.folder / "phone.json"
        self.succeed("--store", f"sqlite:{self.folder}/other.db", "--quiet", "predict", "train", "--device", "local", "--max-time", "0.1", *models, "-o", predictor)
        device = self.fit(self.fleet([f"{{name: phone, latency: \"predictor:{predictor}\", budget: {{latency: 900}}}}"]))["devices"][0]
        self.assertEqual((device["state"], device["measurements"]), ("predicted", 0))
        self.assertGreater(device["best"]["latency_ms"]["expected"], 0)
        self.assertLessEqual(device["best"]["latency_ms"]["interval90"][1], 900)
        self.assertTrue((self.folder / "out/devices/phone/model.onnx").exists())

    def test_optional_device_that_is_not_there_is_left_out(self):
        lines = ["{name: one, budget: {latency: 500%}}", "{name: peer, runtime: 'exec:/no/such/program', optional: true, budget: {latency: 9}}"]
        report = self.fit(self.fleet(lines))
        self.assertEqual([device["device"] for device in report["devices"]], ["one"])
        self.assertIn("peer: ", report["left_out"][0])

    def test_killed_at_any_moment_it_goes_on(self):
        fleet = self.fleet(["{name: one, budget: {latency: 500%}}", "{name: two, threads: 2, budget: {latency: 500%}}"])
        command = [cli.program(), *map(str, self.command(fleet))]
        for delay_s in (0.3, 0.8, 1.3):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay_s)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        with sqlite3.connect(self.folder / "store.db") as store:
            kept = store.execute("SELECT id, median_ms FROM measurements ORDER BY id").fetchall()
        report = self.fit(fleet)
        self.assertTrue(report["all_fitted"])
        with sqlite3.connect(self.folder / "store.db") as store:
            self.assertEqual(store.execute("SELECT id, median_ms FROM measurements ORDER BY id").fetchall()[:len(kept)], kept)
        store.close()
        self.assertEqual(self.fit(fleet)["devices"], report["devices"])


class BadFleets(FitCase):
    def test_names_what_is_wrong(self):
        for head, device, naming in [
                ("", "{name: one, runtime: tpu, budget: {latency: 9}}", "tiny.yaml:8: device one: "),
                ("", "{name: one, device: nobody, budget: {latency: 9}}", "nobody"),
                ("", "{name: one, device: a, threads: 2, budget: {latency: 9}}", "tiny.yaml:8: devices[0]: "),
                ("", "{name: one, latency: 'table:none.json', budget: {latency: 9}}", "none.json"),
                ("elastic: {limit: 10}\n", "{name: one, budget: {latency: 9}}", "tiny.yaml:7: elastic"),
                ("model: a.onnx\n", "{name: one, budget: {latency: 9}}", "expected either model")]:
            self.refuse(*self.command(self.fleet([device], head)), naming=naming)


if __name__ == "__main__":
    cli.main()
