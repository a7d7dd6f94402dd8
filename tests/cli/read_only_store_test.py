"""A store where it cannot be written is shown as it is. Needs a user who may not write, or the right to mount."""
import os
import shutil
import subprocess
import sys

import cli

SKIPPED = 77


def as_ordinary_user():
    """The command before another that lets no rights of root count; none if we have none."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def can_be_made():
    if os.geteuid() != 0:
        return True
    return bool(shutil.which("setpriv")) and subprocess.run([*as_ordinary_user(), "true"], stderr=subprocess.DEVNULL).returncode == 0


class ReadOnly(cli.Case):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.shelf = self.folder / "shelf?100%#1"  # what a URI would take for something else
        self.shelf.mkdir()
        self.file = self.shelf / "store.db"
        self.store = ["--store", f"sqlite:{self.file}"]
        self.succeed(*self.store, "device", "add", "kept")
        self.file.chmod(0o644)  # it is made for its owner alone
        self.addCleanup(self.shelf.chmod, 0o755)

    def close(self):
        self.shelf.chmod(0o555)

    def run_without_rights(self, *args):
        command = [*as_ordinary_user(), cli.program(), *map(str, args)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120, cwd="/")
        return cli.Outcome(" ".join(command), done.returncode, done.stdout, done.stderr)

    def test_verbs_that_look_show_it(self):
        self.close()
        before = self.file.read_bytes()
        for args in [("device", "list"), ("study", "list")]:
            outcome = self.run_without_rights(*self.store, "--json", *args)
            self.assertEqual(outcome.status, 0, outcome)
        self.assertIn("kept", self.run_without_rights(*self.store, "device", "list").stdout)
        copied = self.run_without_rights("--json", "store", "copy", f"sqlite:{self.file}", "memory:")
        self.assertEqual(copied.status, 0, copied)
        self.assertEqual(self.file.read_bytes(), before)
        self.assertEqual([f.name for f in self.shelf.iterdir()], ["store.db"])

    def test_verbs_that_write_say_why_not(self):
        self.close()
        for args in [("device", "add", "other"), ("device", "remove", "kept")]:
            outcome = self.run_without_rights(*self.store, *args)
            self.assertEqual(outcome.status, 1, outcome)
            self.assertRegex(outcome.stderr, r"\Afleetfit: [^\n]*store\.db: [^\n]*\n\Z")

    def test_records_that_are_only_in_a_log_are_not_passed_over(self):
        log = self.shelf / "store.db-wal"
        log.write_bytes(b"x" * 4096)
        self.close()
        outcome = self.run_without_rights(*self.store, "device", "list")
        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn("store.db-wal", outcome.stderr)


if __name__ == "__main__":
    if not can_be_made():
        print("no user without rights can be made here", file=sys.stderr)
        sys.exit(SKIPPED)
    cli.main()
