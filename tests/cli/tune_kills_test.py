"""Eight workers, their tuner and their data base under random kill -9: nothing is lost, nothing is done twice.

FLEETFIT_KILLS says how many kills; 10 if it is not set. The store is a file or, beside a server of tools/with-postgres, in that; of the
server any process may be killed. Beside a cluster of tools/with-slurm workers are its jobs, and its daemons are killed as well.
"""
import collections
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import time

import cli
import postgres

KILLS = int(os.environ.get("FLEETFIT_KILLS", "10"))
TRIALS = 24
WORKERS = 8

# Every run of a level writes to a witness file when it begins and when it has its result. It looks whether the run
# before it, which left its process id in the checkpoint folder, is still alive: has a command line, which a process that
# has ended and waits for somebody to take notice has not.
TRAIN = r"""
field() { rest=${FLEETFIT_TRIAL#*\"$1\":}; rest=${rest%%[,\}]*}; echo ${rest#\"} | tr -d '"'; }
trial=$(field trial); epochs=$(field epochs); folder=$(field checkpoint_dir); study=$(field study)
if [ -e $folder/pid ] && tr -d '\0' 2>/dev/null </proc/$(cat $folder/pid)/cmdline | grep -q train; then echo "overlap $study $trial $epochs" >>WITNESS; fi
echo $$ >$folder/pid
echo "begin $study $trial $epochs" >>WITNESS
sleep 0.1
echo "end $study $trial $epochs" >>WITNESS
rm $folder/pid
echo '{"result": {"accuracy": 0.'$((trial % 7 + 1))$epochs'}}'
"""

STUDY = """
name: NAME
workload: {command: [sh, FOLDER/train.sh]}
parameters: {training: {rate: {range: [0.001, 1], log: true}}}
objective: {maximize: accuracy}
budget: {kind: epochs, min_epochs: 1, max_epochs: 4, eta: 2, max_trials: TRIALS}
algorithm: {model: asha}
"""


def command_line(pid):
    try:
        return (pathlib.Path("/proc") / pid / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False


class Kills(cli.Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(7)
        self.server = postgres.Server()
        self.store = self.server.new_store() if self.server.is_there() else f"sqlite:{self.folder}/store.db"
        self.cluster = os.environ.get("FLEETFIT_TEST_SLURM_FOLDER")
        self.witness = self.folder / "witness"
        self.witness.touch()
        (self.folder / "train.sh").write_text(TRAIN.replace("WITNESS", str(self.witness)))

    def processes(self, *words):
        """Those of this test whose command line has all the words."""
        wanted = [str(self.folder), *words]
        return [int(pid) for pid in os.listdir("/proc")
                if pid.isdigit() and int(pid) != os.getpid() and all(word in command_line(pid) for word in wanted)]

    def study_file(self, name):
        file = self.folder / f"{name}.yaml"
        file.write_text(STUDY.replace("NAME", name).replace("FOLDER", str(self.folder)).replace("TRIALS", str(TRIALS)))
        return file

    def start(self, name):
        return subprocess.Popen([cli.program(), "--store", self.store, "tune", str(self.study_file(name)), "--resume",
                                 "--workers", str(WORKERS), "--lease", "1", "--folder", str(self.folder / "studies"),
                                 "--executor", "slurm" if self.cluster else "local"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def kill_one(self, tuner):
        """The tuner and the data base now and then, a worker mostly; says whether somebody was there to be killed."""
        dice = self.random.random()
        if dice < 0.2:
            self.tuners_killed += 1
            return kill(tuner.pid)
        if dice < 0.3 and self.server.is_there():
            processes = self.server.processes()
            killed = bool(processes) and kill(self.random.choice(processes))
            self.servers_killed += killed
            return killed
        if dice < 0.4 and self.cluster:
            daemon = self.random.choice(["slurmctld", "n1", "n2", "n3"])
            killed = kill(int(pathlib.Path(self.cluster, daemon + ".running").read_text()))
            self.daemons_killed += killed
            return killed
        workers = self.processes("study work")
        return bool(workers) and kill(self.random.choice(workers))

    def tune_and_kill(self, name, kills):
        """Tunes a study to its end; gives how many kills it took."""
        done = 0
        while True:
            tuner = self.start(name)
            while done < kills and tuner.poll() is None:
                time.sleep(self.random.uniform(0.02, 0.25))
                done += self.kill_one(tuner)
            _, said = tuner.communicate(timeout=300)
            if tuner.returncode == 0:
                return done
            if self.server.is_there() and tuner.returncode != -signal.SIGKILL and "postgres://" in said.splitlines()[-1]:
                time.sleep(0.5)  # it was started while the data base was down
                continue
            self.assertEqual(tuner.returncode, -signal.SIGKILL, said)

    def test_nothing_is_lost_and_nothing_done_twice(self):
        self.tuners_killed = 0
        self.servers_killed = 0
        self.daemons_killed = 0
        kills = 0
        names = []
        began = time.monotonic()
        while kills < KILLS or not names:
            names.append(f"study{len(names)}")
            kills += self.tune_and_kill(names[-1], KILLS - kills)
        runs = collections.Counter(self.witness.read_text().splitlines())
        self.assertEqual([line for line in runs if line.startswith("overlap")], [])
        levels = sum(self.check_study(name, runs) for name in names)
        begun = sum(count for line, count in runs.items() if line.startswith("begin"))
        print(f"{kills} kills ({self.tuners_killed} of tuners, {self.servers_killed} of the server, {self.daemons_killed} of Slurm), {len(names)} studies, {len(names) * TRIALS} trials, "
              f"{levels} levels, {begun} runs, {time.monotonic() - began:.0f} s")
        for _ in range(100 if self.cluster else 1):  # jobs are cancelled in their own time
            left = self.processes("study work") + self.processes("train.sh")
            time.sleep(0.2 if left and self.cluster else 0)
        self.assertEqual(left, [])

    def check_study(self, name, runs):
        trials = self.succeed_json("--store", self.store, "study", "show", name)["trials"]
        self.assertEqual(sorted(trial["trial"] for trial in trials), list(range(TRIALS)))
        wrong = [trial for trial in trials if trial["status"] not in ("finished", "stopped")]
        self.assertEqual(wrong, [])
        levels = self.levels(name)
        self.assertEqual([level for level, count in collections.Counter(levels).items() if count > 1], [])
        self.assertEqual({trial for trial, _ in levels}, set(range(TRIALS)))
        unseen = [level for level in levels if f"end {name} {level[0]} {level[1]}" not in runs]
        self.assertEqual(unseen, [])
        return len(levels)

    def levels(self, name):
        """(trial, epochs) of all levels that the store calls ended."""
        sql = ("SELECT trial, epochs FROM levels JOIN studies ON studies.id = levels.study "
               f"WHERE studies.name = '{name}'")
        if self.server.is_there():
            return [(int(trial), int(epochs)) for trial, epochs in self.server.rows(self.store, sql)]
        with sqlite3.connect(self.folder / "store.db") as connection:
            return connection.execute(sql).fetchall()


if __name__ == "__main__":
    cli.main()
