"""Studies on a Slurm cluster of three nodes; run by tools/with-slurm."""
import json
import os
import pathlib
import signal
import subprocess
import time

import cli
import slow_folder

TRAIN = """
import json, os, time
t = json.loads(os.environ["FLEETFIT_TRIAL"])
time.sleep(float(os.environ.get("SLURM_TEST_SLEEP", "0")))
print(json.dumps({"result": {"accuracy": 1 - (t["params"]["x"] - 0.3) ** 2}}))
"""

STUDY = """
name: s
workload: {command: [python3, FOLDER/train.py]}
parameters: {training: {x: {range: [0, 1]}}}
objective: {maximize: accuracy}
budget: {kind: epochs, min_epochs: 1, max_epochs: 2, eta: 2, max_trials: 12}
algorithm: {model: asha}
resources: RESOURCES
"""


class SlurmCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.cluster = os.environ.get("FLEETFIT_TEST_SLURM_FOLDER")
        if not self.cluster:
            self.skipTest("there is no cluster; tools/with-slurm starts one")
        (self.folder / "train.py").write_text(TRAIN)
        self.store = f"sqlite:{self.folder}/store.db"

    def study_file(self, resources="{cores: 1, memory: 100M, time_min: 5}"):
        file = self.folder / "study.yaml"
        file.write_text(STUDY.replace("FOLDER", str(self.folder)).replace("RESOURCES", resources))
        return file

    def tune(self, *flags, **environment):
        return subprocess.Popen([cli.program(), "--store", self.store, "tune", str(self.study_file()), "--executor", "slurm", "--workers", "4",
                                 *flags], env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def squeue(self, form, *flags):
        return subprocess.run(["squeue", "--noheader", "--array", f"--format={form}", *flags], check=True, capture_output=True,
                              text=True).stdout.split()

    def wait_until(self, condition, what):
        for _ in range(600):
            if condition():
                return
            time.sleep(0.1)
        self.fail(what)


class Slurm(SlurmCase):
    def test_a_study_is_tuned_by_the_jobs_of_one_array(self):
        tuner = self.tune()
        stdout, stderr = tuner.communicate(timeout=120)
        self.assertEqual(tuner.returncode, 0, stderr)
        self.assertIn("12 trials", stdout)
        logs = [log.stem.split("_") for log in (self.folder / "store.db.studies/slurm").glob("*.log")]
        self.assertEqual(sorted(task for _, task in logs), ["0", "1", "2", "3"])
        self.assertEqual(len({job for job, _ in logs}), 1, "one array for all workers")

    def test_an_interrupted_study_leaves_no_jobs(self):
        tuner = self.tune(SLURM_TEST_SLEEP="5")
        self.wait_until(lambda: len(self.squeue("%T", "--states=running")) == 4, "no jobs are running")
        tuner.send_signal(signal.SIGINT)
        stdout, stderr = tuner.communicate(timeout=60)
        self.assertEqual(tuner.returncode, 1, stderr)
        self.assertIn("--resume goes on", stdout)
        self.wait_until(lambda: not self.squeue("%T"), "jobs are left")
        states = {trial["status"] for trial in self.succeed_json("--store", self.store, "study", "show", "s")["trials"]}
        self.assertNotIn("running", states)

    def test_a_controller_that_is_lost_is_waited_for(self):
        tuner = self.tune(SLURM_TEST_SLEEP="0.7")
        self.wait_until(lambda: self.squeue("%T", "--states=running"), "no jobs are running")
        controller = int(pathlib.Path(self.cluster, "slurmctld.running").read_text())
        os.kill(controller, signal.SIGSTOP)
        time.sleep(0.1)
        os.kill(controller, signal.SIGKILL)
        stdout, stderr = tuner.communicate(timeout=240)
        self.assertEqual(tuner.returncode, 0, stderr)
        self.assertIn("12 trials", stdout)
        self.assertLessEqual(stderr.count("waiting until Slurm answers"), 1)

    def test_a_cluster_that_refuses_ends_the_study_with_its_words(self):
        self.study_file()
        file = self.study_file("{partition: nowhere}")
        outcome = cli.run("--store", self.store, "tune", file, "--executor", "slurm")
        self.assertEqual(outcome.status, 1, outcome)
        self.assertRegex(outcome.stderr, r"fleetfit: sbatch: .*partition")


class Campaign(SlurmCase):
    def test_designs_are_measured_by_jobs_and_not_twice(self):
        command = [cli.program(), "--store", self.store, "--json", "measure", "--space", "icpe", "--samples", "4", "--designs-per-job", "2",
                   "--max-time", "0.2", "--target-ci", "90", "--executor", "slurm", "--resources", "{cores: 1}", "--folder", str(self.folder / "jobs")]
        first = subprocess.run(command, capture_output=True, text=True, timeout=200)
        self.assertIn(first.returncode, (0, 1), first.stderr)  # 1: one of them did not settle
        results = json.loads(first.stdout)
        self.assertEqual(len(results), 4)
        self.assertEqual(len(list((self.folder / "jobs/slurm").glob("*.log"))), 2)
        local = [flag for flag in command if flag not in ("--executor", "slurm")]
        again = json.loads(subprocess.run(local, capture_output=True, text=True, timeout=200).stdout)
        self.assertEqual([result["latency_ms"] for result in again], [result["latency_ms"] for result in results])


class Elastify(SlurmCase):
    def test_a_network_is_made_elastic_by_a_job_that_goes_on_after_it_was_killed(self):
        model, bundle = self.folder / "m.onnx", self.folder / "m.ffb"
        self.succeed("train", "resnet20", "--data", "fashion-mnist", "--limit", "256", "--epochs", "1", "--width", "0.25", "--quiet", "-o", model)
        process = subprocess.Popen([cli.program(), "--store", self.store, "elastify", str(model), "--data", "fashion-mnist", "--limit", "512", "-o", str(bundle),
                                    "--executor", "slurm", "--resources", "{cores: 1}", "--folder", str(self.folder / "jobs")],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_until(lambda: self.squeue("%T").count("RUNNING") == 1, "the job never ran")
        (job,) = self.squeue("%i")

        def is_killed():  # a signal that comes before its script has begun is lost
            subprocess.run(["scancel", "--signal=KILL", "--full", job], capture_output=True)
            return job not in self.squeue("%i")
        self.wait_until(is_killed, "the job lives")
        out, said = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn(str(bundle), out)
        (study,) = self.succeed_json("--store", self.store, "study", "list")
        self.assertEqual((study["done"], study["trials"]["finished"]), (True, 1))
        self.assertGreater(study["tuning"]["time_s"], 0)
        self.succeed("bundle", "verify", bundle)


class SlowFolder(SlurmCase):
    def test_a_study_and_a_training_go_well_where_the_shared_folder_is_slow(self):
        with slow_folder.mounted(self.folder / "real", self.folder / "shared", 0.05) as is_there:
            if not is_there:
                self.skipTest("no folder can be mounted; tools/install-packages slurm installs python3-fusepy, and /dev/fuse is needed")
            shared = self.folder / "shared"
            tuner = self.tune("--folder", str(shared / "studies"))
            stdout, stderr = tuner.communicate(timeout=400)
            self.assertEqual(tuner.returncode, 0, stderr)
            self.assertIn("12 trials: ", stdout)
            self.assertIn("0 failed", stdout)
            trained = subprocess.run([cli.program(), "--store", self.store, "train", "resnet8", "--data", "fashion-mnist", "--limit", "128", "--epochs", "2",
                                      "-o", str(shared / "m.onnx"), "--executor", "slurm", "--folder", str(shared / "studies")],
                                     capture_output=True, text=True, timeout=400)
            self.assertEqual(trained.returncode, 0, trained.stderr)
            self.assertIn("after 2 epochs", trained.stdout)
            self.succeed("model", "inspect", shared / "m.onnx")


class NodeLoss(SlurmCase):
    def test_the_jobs_of_a_lost_node_are_run_elsewhere(self):
        if not os.environ.get("FLEETFIT_SLOW"):
            self.skipTest("takes a minute; FLEETFIT_SLOW=1 runs it")
        tuner = self.tune("--lease", "2", SLURM_TEST_SLEEP="8")
        self.wait_until(lambda: len(self.squeue("%T", "--states=running")) == 4, "no jobs are running")
        node = self.squeue("%N", "--states=running")[0]
        # All that a node is: its daemon, kept from being started again, and its jobs.
        daemon = int(pathlib.Path(self.cluster, f"{node}.running").read_text())
        os.kill(daemon, signal.SIGSTOP)
        for pid in self.processes_of(node):
            os.kill(pid, signal.SIGKILL)
        self.wait_until(lambda: self.is_down(node), "the node lives")
        stdout, stderr = tuner.communicate(timeout=240)
        os.kill(daemon, signal.SIGCONT)
        self.assertEqual(tuner.returncode, 0, stderr)
        self.assertIn("12 trials: ", stdout)
        self.assertIn("0 failed", stdout)

    def is_down(self, node):
        state = subprocess.run(["sinfo", "--noheader", "--nodes", node, "--format=%T"], capture_output=True, text=True).stdout
        return "down" in state

    def processes_of(self, node):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                environment = pathlib.Path("/proc", pid, "environ").read_bytes()
            except OSError:
                continue
            if f"SLURMD_NODENAME={node}".encode() in environment.split(b"\0") and str(self.folder).encode() in \
                    pathlib.Path("/proc", pid, "cmdline").read_bytes():
                yield int(pid)


if __name__ == "__main__":
    cli.main()
