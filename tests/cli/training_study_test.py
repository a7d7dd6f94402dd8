"""A training as a study of one trial: its progress and cost are in the store, and it outlives its processes."""
import json
import os
import pathlib
import signal
import subprocess
import time

import cli
import train_test


class TrainingStudy(cli.Case):
    def setUp(self):
        super().setUp()
        self.data = train_test.write_bars(self.folder / "bars")
        self.model = self.folder / "m.onnx"
        self.store = f"sqlite:{self.folder}/store.db"
        self.flags = ["resnet8", "--data", self.data, "--width", 0.5, "-o", self.model]

    def trial(self):
        """The only trial of the only study, or nothing yet."""
        listed = cli.run("--store", self.store, "study", "list", "--json")
        studies = json.loads(listed.stdout) if listed.status == 0 else []
        if not studies:
            return None
        shown = self.succeed_json("--store", self.store, "study", "show", studies[0]["name"])
        return shown["trials"][0] if shown["trials"] else None

    def begin(self, *flags):
        command = [cli.program(), "--store", self.store, "train", *map(str, self.flags), *map(str, flags)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    def wait_for_progress(self, process):
        while not (self.trial() or {}).get("progress"):
            self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
            time.sleep(0.05)

    def kill_workers(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                command = pathlib.Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"work" in command and self.store.encode() in command:
                os.kill(int(pid), signal.SIGKILL)

    def test_says_what_it_says_without_a_study_and_leaves_its_cost_in_the_store(self):
        trained = self.succeed_json("train", *self.flags, "--epochs", 2, "--store", self.store)
        self.assertEqual((trained["epochs"], trained["output"]), (2, str(self.model)))
        trial = self.trial()
        self.assertEqual(trial["status"], "finished")
        self.assertAlmostEqual(trial["accuracy"], trained["accuracy"])
        self.assertGreater(trial["training_s"], 0)
        self.assertIsNone(trial["progress"])
        self.assertEqual(sorted(path.name for path in self.folder.glob("m.onnx*")), ["m.onnx"])
        again = self.succeed_json("train", *self.flags, "--epochs", 1, "--store", self.store)
        self.assertEqual(again["epochs"], 1)

    def test_goes_on_when_its_worker_is_killed(self):
        process = self.begin("--epochs", 40)
        self.wait_for_progress(process)
        self.kill_workers()
        stdout, stderr = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, stderr)
        self.assertIn("after 40 epochs", stdout)
        self.assertEqual(self.trial()["status"], "finished")

    def test_one_that_was_left_is_gone_on_with_by_the_same_command_alone(self):
        process = self.begin("--epochs", 40)
        self.wait_for_progress(process)
        process.kill()
        process.communicate()
        self.refuse("train", *self.flags, "--epochs", 41, "--store", self.store, naming="which has not ended")
        process = self.begin("--epochs", 40)
        stdout, stderr = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, stderr)
        self.assertIn("after 40 epochs", stdout)

    def test_a_failure_has_its_reason(self):
        outcome = cli.run("train", "resnet8", "--data", "idx:/nowhere", "-o", self.model, "--store", self.store, "--quiet")
        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn("/nowhere", outcome.stderr)
        self.assertEqual(self.trial()["status"], "failed")

    def test_bad_flags_are_refused_before_there_is_a_study(self):
        self.refuse("train", *self.flags, "--bogus", "--store", self.store, naming="--bogus")
        self.refuse("train", "resnet8", "-o", self.model, "--store", self.store, naming="--data is required")
        self.refuse("elastify", self.model, "--data", self.data, "-o", self.folder / "m.ffb", "--merge", -1, "--store", self.store, naming="--merge")
        self.assertIsNone(self.trial())

    def test_help_is_help(self):
        shown = self.succeed("train", *self.flags, "--store", self.store, "--help")
        self.assertIn("--epochs", shown.stdout)
        self.assertIsNone(self.trial())

    def test_an_executor_that_is_none_is_refused(self):
        self.refuse("train", *self.flags, "--executor", "cloud", naming="cloud is neither local nor slurm")


if __name__ == "__main__":
    cli.main()
