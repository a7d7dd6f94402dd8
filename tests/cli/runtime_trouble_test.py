"""Runtimes that hang, ignore signals, leave children behind, write without end or report times that cannot be."""
import concurrent.futures
import json
import os
import pathlib
import signal
import stat
import subprocess
import time

import cli

# Behaves, until the file beside it says "OP HOW".
RUNTIME = """#!/usr/bin/env python3
import json, os, pathlib, signal, subprocess, sys, time
here = pathlib.Path(__file__).parent


def hang(request):
    while True:
        time.sleep(1)


def ignore(request):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    hang(request)


def fork(request):
    ignoring = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    children = [subprocess.Popen([sys.executable, "-c", ignoring], start_new_session=own) for own in (False, True)]
    with open(here / "pids", "a") as file:
        file.write("".join(f"{child.pid}\\n" for child in children))
    (here / "forked").touch()
    hang(request)


def endless(request):
    while True:
        sys.stdout.write("x" * 65536)


def gigabyte(request):
    for _ in range(1024):
        sys.stdout.write("x" * 1048576)
    print(flush=True)
    hang(request)


def close(request):
    os.close(1)
    hang(request)


def scratch(request):
    import tempfile
    pathlib.Path(tempfile.mkdtemp()).joinpath("profile").write_text("x")
    hang(request)


with open(here / "pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
for line in sys.stdin:
    request = json.loads(line)
    op, how = (here / "trouble").read_text().split()
    if op == request["op"]:
        (here / "reached").touch()
        if not how.startswith("times:"):
            globals()[how](request)
    times = [5.0] * request.get("runs", 0)
    if op == request["op"] and how.startswith("times:"):
        times = [float(how[6:])] * len(times)
    else:
        time.sleep(sum(times) / 1000)
    text = json.dumps({"id": request["id"], "ok": True, "protocol": 1, "name": "trouble", "version": "1", "build": "test", "times_ms": times})
    print(text, flush=True)
"""
PATIENCE_S = 60  # far more than a signal needs and far less than a runtime is waited for by default


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class TroubleCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "net.onnx"
        self.succeed("model", "zoo", "resnet20", "--width", "0.25", "--image", "8", "-o", self.model)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()

    def runtime(self, name, trouble):
        """A folder with a runtime of its own; gives it and what stands before a verb."""
        home = self.folder / name
        home.mkdir()
        program = home / "runtime.py"
        program.write_text(RUNTIME)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (home / "trouble").write_text("none none")
        store = ["--store", f"sqlite:{home}/store.db"]
        self.succeed(*store, "device", "add", "d", "--runtime", f"exec:{program}")
        (home / "trouble").write_text(trouble)
        return home, store

    def start(self, *args):
        return subprocess.Popen([cli.program(), *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                encoding="utf-8", env={**os.environ, "TMPDIR": str(self.temporary)})

    def wait_for(self, what, wanted):
        end = time.monotonic() + PATIENCE_S
        while not wanted():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def expect_all_gone(self, home):
        pids = [int(line) for line in (home / "pids").read_text().split()]
        self.wait_for(f"{home}: still alive", lambda: not any(map(is_alive, pids)))


class Signals(TroubleCase):
    def interrupt(self, home, number, command, marker="reached"):
        """Sends one signal as soon as the runtime is in trouble; gives the program, which has ended."""
        process = self.start(*command)
        try:
            self.wait_for(f"{command}: not reached", lambda: (home / marker).exists() or process.poll() is not None)
            process.send_signal(number)
            process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
            process.communicate()
        self.assertTrue((home / marker).exists(), command)
        self.expect_all_gone(home)
        self.assertNotEqual(process.returncode, 0, command)
        return process

    def test_one_signal_ends_it_whatever_the_runtime_does(self):
        cases = [(op, how) for op in ("info", "load", "run") for how in ("hang", "ignore", "fork")]
        for i, (op, how) in enumerate([*cases, ("run", "close")]):
            with self.subTest(op=op, how=how):
                home, store = self.runtime(f"{op}-{how}", f"{op} {how}")
                self.interrupt(home, (signal.SIGTERM, signal.SIGINT)[i % 2], [*store, "measure", self.model, "--device", "d"],
                               marker="forked" if how == "fork" else "reached")

    def test_one_signal_ends_every_verb_that_measures(self):
        verbs = {
            "infer": ["infer", "tune", self.model, "--device", "d", "--batch", "1"],
            "space": ["measure", "--space", "icpe", "--samples", "2", "--device", "d"],
            "train": ["predict", "train", "--device", "d", "--space", "icpe", "--samples", "20", "-o", self.folder / "p.json"],
            "check": ["model", "check", self.model, "--against", "d"],
            "kernels": ["kernels", self.model, "--rules", "plain", "--verify", "--device", "d"],
        }
        for name, command in verbs.items():
            with self.subTest(verb=name):
                home, store = self.runtime(name, "load ignore")
                self.interrupt(home, signal.SIGTERM, [*store, *command])

    def test_a_probe_ends_with_one_signal(self):
        process = self.start("device", "probe", "--seconds", "60")
        time.sleep(0.5)
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
        self.assertNotEqual(process.returncode, 0)


class Kill(TroubleCase):
    def test_what_a_runtime_started_dies_with_its_killed_parent(self):
        home, store = self.runtime("home", "load fork")
        process = self.start(*store, "measure", self.model, "--device", "d")
        self.wait_for("not reached", (home / "forked").exists)
        process.kill()
        process.communicate()
        self.expect_all_gone(home)

    def test_scratch_folders_of_the_killed_are_removed_by_the_next_start_and_those_of_the_living_stay(self):
        killed_home, killed_store = self.runtime("killed", "load scratch")
        killed = self.start(*killed_store, "measure", self.model, "--device", "d")
        self.wait_for("not reached", lambda: list(self.temporary.glob("*/*/profile")))
        killed.kill()
        killed.communicate()
        self.expect_all_gone(killed_home)
        left = set(self.temporary.iterdir())
        self.assertTrue(left)
        foreign = self.temporary / "fleetfit-mine"
        foreign.mkdir()

        living_home, living_store = self.runtime("living", "load scratch")
        living = self.start(*living_store, "measure", self.model, "--device", "d")
        self.wait_for("not reached", lambda: any((set(self.temporary.glob("*/*/profile"))) - {p for p in self.temporary.glob("*/*/profile") if p.parents[1] in left}))
        self.assertEqual([p for p in left if p.exists()], [])
        own = set(self.temporary.iterdir())
        other = self.start("space", "list")
        other.communicate(timeout=PATIENCE_S)
        self.assertEqual(other.returncode, 0)
        self.assertEqual(set(self.temporary.iterdir()), own)
        living.terminate()
        living.communicate(timeout=PATIENCE_S)
        self.assertEqual(set(self.temporary.iterdir()), {foreign})


class Answers(TroubleCase):
    def measured(self, name, trouble):
        """What a measurement of a millisecond says of its runtime, and what is left of that."""
        home, store = self.runtime(name.replace(":", ""), trouble)
        outcome = cli.run("--json", *store, "measure", self.model, "--device", "d", "--max-time", "0.01")
        self.expect_all_gone(home)
        return outcome

    def test_runtimes_that_hang_are_given_up_soon_after_the_time_that_was_asked_for(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            hung = {op: pool.submit(self.measured, op, f"{op} hang") for op in ("info", "load", "run")}
        for op, future in hung.items():
            with self.subTest(op=op):
                outcome = future.result()
                self.assertEqual(outcome.status, 1, outcome)
                self.assertIn(f"no answer within 10{dict(info='01', load='10', run='01')[op]}0 ms", outcome.stdout + outcome.stderr)

    def test_output_without_an_end_is_a_failed_measurement(self):
        for how in ("endless", "gigabyte"):
            with self.subTest(how=how):
                outcome = self.measured(how, f"load {how}")
                self.assertEqual(outcome.status, 1, outcome)
                measured = self.parse_json(outcome)[0]
                self.assertEqual(measured["status"], "failed")
                self.assertIn("a line of more than", measured["reason"])

    def test_times_that_cannot_be_are_a_failed_measurement(self):
        for value, reason in [("0", "zero"), ("-1", "negative"), ("nan", "reply to run"), ("inf", "reply to run"), ("1e300", "times_ms[0]"),
                              ("90000", "the request for them was answered after")]:
            with self.subTest(value=value):
                outcome = self.measured("times" + value, f"run times:{value}")
                self.assertEqual(outcome.status, 1, outcome)
                measured = self.parse_json(outcome)[0]
                self.assertEqual((measured["status"], measured["latency_ms"]), ("failed", None))
                self.assertIn(reason, measured["reason"])


if __name__ == "__main__":
    cli.main()
