"""A full disk pauses a study, which goes on when there is room again, and loses nothing. Needs the right to mount a small file system."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import cli
from tune_test import STUDY, TRAIN

SKIPPED = 77


class FullDisk(cli.Case):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", self.disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)
        (self.folder / "train.py").write_text(TRAIN)
        self.file = self.folder / "study.yaml"
        self.file.write_text(STUDY.replace("FOLDER", str(self.folder)).replace("max_trials: 8", "max_trials: 24"))
        self.store = ["--store", f"sqlite:{self.disk}/store.db"]

    def fill(self):
        filler = self.disk / "filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass
        return filler

    def trials(self):
        return self.succeed_json(*self.store, "study", "show", "s")["trials"]

    def wait_for(self, what, process, seconds=60):
        end = time.monotonic() + seconds
        while not what():
            self.assertIsNone(process.poll(), "tune has ended")
            self.assertLess(time.monotonic(), end, (self.folder / "log").read_text())
            time.sleep(0.05)

    def test_pauses_a_study_which_then_goes_on_and_has_lost_nothing(self):
        log = self.folder / "log"
        environment = {**os.environ, "TUNE_TEST_SLEEP": "0.05"}
        with open(log, "w") as out:
            process = subprocess.Popen([cli.program(), *self.store, "tune", self.file, "--workers", "2"], cwd=self.disk, stdout=out, stderr=out, env=environment)
        self.addCleanup(process.kill)
        self.wait_for(lambda: (self.disk / "store.db").exists() and len(self.trials()) > 3, process)
        filler = self.fill()
        self.wait_for(lambda: "waiting until the store can be used again" in log.read_text(), process)
        before = {trial["trial"]: trial for trial in self.trials() if trial["status"] == "finished"}
        filler.unlink()
        self.assertEqual(process.wait(120), 0, log.read_text())
        self.assertIn("the store can be used again\n", log.read_text())
        after = self.trials()
        self.assertEqual([trial["trial"] for trial in after], list(range(24)))
        self.assertLessEqual({trial["status"] for trial in after}, {"finished", "stopped"}, log.read_text())
        for number, trial in before.items():
            self.assertEqual(after[number], trial)


def may_mount():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False)
        if done.returncode == 0:
            subprocess.run(["umount", "-l", folder], check=True)
        return done.returncode == 0


if __name__ == "__main__":
    if not may_mount():
        print("skipped: this user may not mount a file system")
        sys.exit(SKIPPED)
    cli.main()
