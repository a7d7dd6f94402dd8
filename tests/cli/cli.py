"""What the tests of the command line share: run the program, look at its status, its output and its one line of error.

A file of cases ends with `cli.main()` and is called as `python3 FILE_test.py PROGRAM`.
"""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
_program = None


@dataclasses.dataclass
class Outcome:
    command: str
    status: int  # negative: the signal that ended the program
    stdout: str
    stderr: str

    def __str__(self):
        return f"{self.command}\nstatus {self.status}\nstdout: {self.stdout[-1000:]}\nstderr: {self.stderr[-1000:]}"


def program():
    return str(_program)


def need_onnxruntime(case):
    """Skips a test where ONNX Runtime is not installed."""
    if not (_program.parents[2] / "runtimes/onnxruntime/node_modules/onnxruntime-node/package.json").exists():
        case.skipTest("ONNX Runtime is not there; tools/install-runtime onnxruntime installs it")


def run(*args, timeout_s=120):
    """Runs the program with these arguments, without a terminal."""
    command = [str(_program), *map(str, args)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=timeout_s)
    outcome = Outcome(" ".join(command), done.returncode, done.stdout, done.stderr)
    # Who reads stderr alone, as scripts do, learns why there is no status 0.
    if outcome.status == 1 and not any(line.startswith("fleetfit: ") for line in outcome.stderr.splitlines()):
        raise AssertionError(f"status 1 without a reason on stderr: {outcome}")
    return outcome


class Case(unittest.TestCase):
    """A test case with an empty folder of its own, `self.folder`."""

    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="fleetfit-cli-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def succeed(self, *args):
        """Runs; expects status 0 and a silent stderr; gives the outcome."""
        outcome = run(*args)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(outcome.stderr, "", outcome)
        return outcome

    def succeed_json(self, *args):
        """Runs with --json; expects status 0 and one JSON document on stdout; gives what it holds."""
        return self.parse_json(self.succeed(*args, "--json"))

    def parse_json(self, outcome):
        try:
            return json.loads(outcome.stdout)
        except json.JSONDecodeError as error:
            self.fail(f"not one JSON document: {error}\n{outcome}")

    def peak_memory(self, *args):
        """Runs; gives the most memory that the program held, in bytes."""
        process = subprocess.Popen([str(_program), *map(str, args)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        return usage.ru_maxrss * 1024

    def refuse(self, *args, naming=""):
        """Runs; expects status 2, nothing on stdout, and one line on stderr: `fleetfit: ` and a text that has `naming` in it."""
        outcome = run(*args)
        self.assertEqual(outcome.status, 2, outcome)
        self.assertEqual(outcome.stdout, "", outcome)
        self.assertRegex(outcome.stderr, r"\Afleetfit: [^\n]+\n\Z", outcome)
        self.assertIn(str(naming), outcome.stderr, outcome)
        return outcome


def main():
    global _program
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PROGRAM [unittest's options]")
    _program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(module="__main__")
