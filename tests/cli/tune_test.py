"""fleetfit tune: studies from beginning to end, interrupted and gone on with, and what is refused."""
import os
import signal
import sqlite3
import subprocess
import time

import cli

TRAIN = """
import json, os, sqlite3, sys, time
t = json.loads(os.environ["FLEETFIT_TRIAL"])
p, b = t["params"], t["budget"]
if os.environ.get("TUNE_TEST_SLEEP"): time.sleep(float(os.environ["TUNE_TEST_SLEEP"]))
if "TUNE_TEST_PRICED" in os.environ and t["trial"] == 4:  # all networks were trained once by then
    priced = sqlite3.connect(os.environ["TUNE_TEST_PRICED"])
    last = time.monotonic() + 120
    while priced.execute("SELECT count(*) FROM inferences").fetchone()[0] < 2 and time.monotonic() < last: time.sleep(0.1)
a = (0.5 + 0.05 * p["width"]) * (1 - 0.5 ** b["epochs"])
print("width", p["width"])
print(json.dumps({"epoch": b["epochs"], "accuracy": a}), flush=True)
result = {"accuracy": a}
if "TUNE_TEST_MODELS" in os.environ: result["model"] = "%s/%d.onnx" % (os.environ["TUNE_TEST_MODELS"], p["width"])
print(json.dumps({"result": result}))
"""

STUDY = """
name: s
workload: {command: [python3, FOLDER/train.py]}
parameters: {model: {width: {values: [1, 2, 3, 4]}}}
objective: {maximize: accuracy}
budget: {kind: epochs, min_epochs: 1, max_epochs: 4, eta: 2, max_trials: 8}
algorithm: {model: {sampler: grid, scheduler: asha}}
"""


class TuneCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.store = ["--store", f"sqlite:{self.folder}/store.db"]
        (self.folder / "train.py").write_text(TRAIN)
        self.file = self.write(STUDY)

    def write(self, text):
        file = self.folder / "study.yaml"
        file.write_text(text.replace("FOLDER", str(self.folder)))
        return file

    def trials(self):
        return self.succeed_json(*self.store, "study", "show", "s")["trials"]

    def tune(self, *flags, status=0):
        outcome = cli.run(*self.store, "tune", self.file, *flags)
        self.assertEqual(outcome.status, status, outcome)
        return outcome


class LostStore(TuneCase):
    def lose(self, lose, *flags):
        """Starts a study of some minutes, takes its store away when it has results, and gives how the tuner ended."""
        environment = {**os.environ, "TUNE_TEST_SLEEP": "0.1"}
        file = self.write(STUDY.replace("values: [1, 2, 3, 4]", "values: [%s]" % ", ".join(map(str, range(1, 200)))).replace("max_trials: 8", "max_trials: 150"))
        tuner = subprocess.Popen([cli.program(), *self.store, "tune", str(file), "--workers", "2", *flags], cwd=self.folder, env=environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(tuner.kill)
        database = self.folder / "store.db"

        def ended():
            with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as store:
                return store.execute("SELECT count(*) FROM levels").fetchone()[0]

        while not database.exists():
            self.assertIsNone(tuner.poll())
            time.sleep(0.05)
        while True:
            self.assertIsNone(tuner.poll())
            try:
                if ended() > 1:
                    break
            except sqlite3.OperationalError:
                pass  # its tables are being made
            time.sleep(0.05)
        lose(database)
        _, stderr = tuner.communicate(timeout=90)
        self.assertEqual(tuner.returncode, 1, stderr)
        return stderr

    def expect_one_line(self, stderr):
        errors = [line for line in stderr.splitlines() if "was removed or replaced" in line and "checkpoints and logs are kept in" in line]
        self.assertEqual(len(errors), 1, stderr)
        self.assertIn("--resume goes on", errors[0])

    def test_that_is_deleted_ends_the_study_also_quietly(self):
        def delete(database):
            for file in self.folder.glob("store.db*"):
                if file.is_file():
                    file.unlink()

        for flags in ([], ["--quiet"]):
            self.expect_one_line(self.lose(delete, *flags))
            self.assertFalse((self.folder / "store.db").exists(), "a worker has made a new store")

    def test_that_is_replaced_ends_the_study(self):
        def replace(database):
            other = self.folder / "other.db"
            other.write_bytes(database.read_bytes())
            other.replace(database)

        self.expect_one_line(self.lose(replace))

    def test_patience_has_units_and_bounds(self):
        for wrong in ("1y", "-1s", "soon", "nan", "1e9h"):
            self.refuse(*self.store, "tune", self.file, "--store-patience", wrong, naming="store-patience")


class Tune(TuneCase):
    def test_finds_the_best_and_says_what_study_best_says(self):
        outcome = self.tune("--workers", "2", "--json")
        self.assertEqual(outcome.stderr, "")
        best = self.parse_json(outcome)
        self.assertEqual(best, self.succeed_json(*self.store, "study", "best", "s"))
        self.assertEqual(best["params"]["model"], {"width": 4})
        self.assertAlmostEqual(best["accuracy"], 0.7 * (1 - 0.5 ** 4))
        trials = self.trials()
        self.assertEqual([trial["trial"] for trial in trials], list(range(8)))
        self.assertLessEqual({trial["status"] for trial in trials}, {"finished", "stopped"})

    def test_tells_people_the_best_so_far_and_the_end(self):
        outcome = self.tune()
        self.assertIn("best so far: trial", outcome.stderr)
        self.assertRegex(outcome.stdout, r"8 trials: \d+ finished, \d+ stopped, 0 failed\nbest: trial \d+")

    def test_goes_on_only_if_asked_and_only_with_the_same_file(self):
        self.tune()
        self.refuse(*self.store, "tune", self.file, naming="--resume")
        self.tune("--resume")  # nothing is left to do
        self.assertEqual(len(self.trials()), 8)
        self.write(STUDY.replace("max_trials: 8", "max_trials: 9"))
        self.refuse(*self.store, "tune", self.file, "--resume", naming="has changed")

    def test_an_interrupted_study_keeps_what_is_finished(self):
        os.environ["TUNE_TEST_SLEEP"] = "0.2"
        self.addCleanup(os.environ.pop, "TUNE_TEST_SLEEP")
        process = subprocess.Popen([cli.program(), *self.store, "tune", str(self.file)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while self.count("levels") < 2:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, stderr)
        self.assertIn("--resume goes on", stdout)
        self.assertNotIn("running", {trial["status"] for trial in self.trials()})
        before = self.count("levels")
        self.tune("--resume", "--workers", "2")
        self.assertGreater(self.count("levels"), before)
        self.assertEqual(len(self.trials()), 8)

    def count(self, table):
        try:
            with sqlite3.connect(self.folder / "store.db") as connection:
                return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        except sqlite3.OperationalError:
            return 0

    def test_two_tuners_of_one_study_are_one_too_many(self):
        os.environ["TUNE_TEST_SLEEP"] = "30"
        self.addCleanup(os.environ.pop, "TUNE_TEST_SLEEP")
        with subprocess.Popen([cli.program(), *self.store, "tune", str(self.file)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as first:
            while self.count("trials") == 0:
                time.sleep(0.05)
            self.refuse(*self.store, "tune", self.file, "--resume", naming="another process")
            first.terminate()

    def test_trials_that_fail_have_a_reason(self):
        self.write(STUDY.replace("FOLDER/train.py", "-c, 'print(1 / 0)'"))
        outcome = self.tune(status=1)
        self.assertIn("ZeroDivisionError", outcome.stderr)
        for trial in self.trials():
            self.assertEqual(trial["status"], "failed")
            self.assertIn("exit status 1", trial["reason"])

    def test_refuses_bad_studies_and_flags(self):
        self.refuse(*self.store, "tune", naming="STUDY")
        self.refuse(*self.store, "tune", self.folder / "none.yaml", naming="none.yaml")
        self.refuse("--store", "memory:", "tune", self.file, naming="memory:")
        self.refuse(*self.store, "tune", self.file, "--workers", "0", naming="--workers")
        self.refuse(*self.store, "tune", self.file, "--executor", "moon", naming="--executor")
        self.write(STUDY.replace("max_epochs: 4", "max_epochs: 0"))
        self.refuse(*self.store, "tune", self.file, naming="study.yaml:6: budget.max_epochs")
        self.refuse(*self.store, "study", "work", "nosuch", naming="nosuch")


INFERENCE = """
inference: {devices: [local], parameters: {batch_size: {values: [1]}}}
constraints: {latency_ms: {local: LIMIT}}
"""


class Inference(TuneCase):
    def setUp(self):
        super().setUp()
        for width in (1, 2, 3, 4):  # two networks under four names
            self.succeed("model", "zoo", "resnet20", "--width", "0.25" if width < 3 else "0.5",
                         "-o", self.folder / f"{width}.onnx")
        os.environ["TUNE_TEST_MODELS"] = str(self.folder)
        self.addCleanup(os.environ.pop, "TUNE_TEST_MODELS")

    def test_every_network_is_priced_once_and_deployments_are_told(self):
        self.write(STUDY + INFERENCE.replace("LIMIT", "10000"))
        best = self.parse_json(self.tune("--workers", "2", "--json"))
        self.assertGreater(best["inference"][0]["latency_ms"], 0)
        self.assertEqual(self.succeed_json(*self.store, "study", "show", "s")["inference_tunings"], 2)

    def test_networks_that_are_too_slow_are_stopped(self):
        self.write(STUDY + INFERENCE.replace("LIMIT", "0.0001"))
        os.environ["TUNE_TEST_PRICED"] = str(self.folder / "store.db")  # so that both networks are priced in the end
        self.addCleanup(os.environ.pop, "TUNE_TEST_PRICED")
        self.tune("--workers", "1", status=1)
        for trial in self.trials():
            self.assertEqual(trial["status"], "stopped")
            self.assertIn("latency on local", trial["reason"])
        untrained = [trial for trial in self.trials() if trial["accuracy"] is None]
        self.assertGreater(len(untrained), 0)  # the later ones are known to be too slow


if __name__ == "__main__":
    cli.main()
