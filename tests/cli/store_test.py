"""Stores in PostgreSQL as users see them, beside files of SQLite; run by tools/with-postgres."""
import os
import pathlib
import signal
import subprocess
import time

import cli
import postgres

TRAIN = """
import json, os, sys, time
t = json.loads(os.environ["FLEETFIT_TRIAL"])
p, b = t["params"], t["budget"]
time.sleep(float(os.environ.get("STORE_TEST_SLEEP", "0")))
print(json.dumps({"result": {"accuracy": (1 - (p["x"] - 0.3) ** 2) * (1 - 0.5 ** b["epochs"])}}))
"""

STUDY = """
name: s
workload: {command: [python3, FOLDER/train.py]}
parameters: {training: {x: {range: [0, 1]}, rate: {range: [0.001, 1], log: true}}}
objective: {maximize: accuracy}
budget: {kind: epochs, min_epochs: 1, max_epochs: 4, eta: 2, max_trials: TRIALS}
algorithm: {model: bohb}
seed: 11
"""


class StoreCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.server = postgres.Server()
        if not self.server.is_there():
            self.skipTest("there is no server; tools/with-postgres starts one")
        (self.folder / "train.py").write_text(TRAIN)

    def study_file(self, trials=14):
        file = self.folder / "study.yaml"
        file.write_text(STUDY.replace("FOLDER", str(self.folder)).replace("TRIALS", str(trials)))
        return file

    def history(self, store):
        """All that a study has decided and reached, without times and names of workers."""
        trials = self.succeed_json("--store", store, "study", "show", "s")["trials"]
        wanted = ("trial", "status", "params", "budget", "accuracy", "reason")
        return [{key: trial[key] for key in wanted if key in trial} for trial in trials]


class SameStudy(StoreCase):
    def test_has_the_same_history_in_a_file_and_in_a_server(self):
        histories = []
        for store in (f"sqlite:{self.folder}/a.db", self.server.new_store()):
            outcome = cli.run("--store", store, "tune", self.study_file(), "--folder", self.folder / "studies")
            self.assertEqual(outcome.status, 0, outcome)
            histories.append(self.history(store))
        self.assertEqual(len(histories[0]), 14)
        self.assertEqual(histories[0], histories[1])

    def test_is_copied_and_goes_on_where_it_was_copied_to(self):
        file, server, back = f"sqlite:{self.folder}/a.db", self.server.new_store(), f"sqlite:{self.folder}/b.db"
        self.assertEqual(cli.run("--store", file, "tune", self.study_file()).status, 0)
        counts = self.succeed_json("store", "copy", file, server)
        self.assertEqual((counts["studies"], counts["trials"]), (1, 14))
        self.succeed("store", "copy", server, back)
        self.assertEqual(self.history(file), self.history(server))
        self.assertEqual(self.history(file), self.history(back))
        self.assertEqual(cli.run("--store", server, "tune", self.study_file(), "--resume", "--folder", self.folder / "studies").status, 0)
        self.refuse("store", "copy", file, server, naming="there is something")
        self.refuse("store", "copy", f"sqlite:{self.folder}/none.db", server, naming="none.db")
        self.assertFalse((self.folder / "none.db").exists())
        self.refuse("store", "copy", file, file, naming="two different")


class LostServer(StoreCase):
    def start(self, store, *arguments):
        return subprocess.Popen([cli.program(), "--store", store, *map(str, arguments)], cwd=self.folder, env=dict(os.environ, STORE_TEST_SLEEP="0.2"),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_rows(self, process, store, table, count):
        there = f"SELECT count(*) FROM pg_tables WHERE tablename = '{table}' AND schemaname = current_schema"
        while process.poll() is None and (self.server.rows(store, there)[0][0] != "1" or
                                          int(self.server.rows(store, f"SELECT count(*) FROM {table}")[0][0]) < count):
            time.sleep(0.05)
        self.assertIsNone(process.poll(), "it has ended already")

    def lose_for_5_s(self, process, statuses=(0,)):
        """Gives what the process printed in the end."""
        hold = self.server.folder / "hold"
        hold.touch()
        os.kill(self.server.postmaster(), signal.SIGKILL)
        time.sleep(5)
        hold.unlink()
        stdout, stderr = process.communicate(timeout=120)
        self.assertIn(process.returncode, statuses, stderr)
        self.assertEqual(stderr.count("waiting until the store can be used again"), 1, stderr)
        self.assertEqual(stderr.count("the store can be used again\n"), 1, stderr)
        return stdout

    def test_pauses_the_study_says_so_once_and_goes_on(self):
        store = self.server.new_store()
        tuner = self.start(store, "tune", self.study_file(10), "--workers", 2)
        self.wait_for_rows(tuner, store, "levels", 3)
        self.assertIn("10 trials", self.lose_for_5_s(tuner))

    def test_pauses_a_campaign_of_measurements(self):
        store = self.server.new_store()
        campaign = self.start(store, "measure", "--space", "nasbench201", "--samples", 12, "--max-time", 0.3, "--sessions", 1)
        self.wait_for_rows(campaign, store, "measurements", 2)
        self.lose_for_5_s(campaign, statuses=(0, 1))  # 1: on a busy machine measurements may not settle
        self.assertEqual(self.server.rows(store, "SELECT count(*), count(DISTINCT model_hash) FROM measurements")[0], ["12", "12"])


class Passwords(StoreCase):
    def test_are_in_no_message_and_no_command_line_of_workers(self):
        store = self.server.new_store().replace("postgres@", "postgres:hush-hush@")
        environment = dict(os.environ, STORE_TEST_SLEEP="0.5")
        tuner = subprocess.Popen([cli.program(), "--store", store, "tune", str(self.study_file(3))], cwd=self.folder, env=environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = []
        while tuner.poll() is None and not lines:
            lines = [line for line in self.command_lines() if "study work" in line and str(self.folder) in line]
            time.sleep(0.02)
        stdout, stderr = tuner.communicate(timeout=60)
        self.assertEqual(tuner.returncode, 0, stderr)
        self.assertTrue(lines)
        for text in (*lines, stdout, stderr):
            self.assertNotIn("hush-hush", text)
        self.refuse("--store", "postgres://me:hush-hush@host/db?nonsense=1", "study", "list", naming="URL cannot be read")

    @staticmethod
    def command_lines():
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                yield (pathlib.Path("/proc") / pid / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                pass


if __name__ == "__main__":
    cli.main()
