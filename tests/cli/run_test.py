"""fleetfit run: requests of a data set, of lines and over HTTP; switches; bad input."""
import base64
import json
import pathlib
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import cli
import tiny_bundle
from tiny_bundle import CLASSES, IMAGES, SIZE, npy


class RunCase(cli.Case):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="fleetfit-run-")
        cls.addClassCleanup(temporary.cleanup)
        cls.shared = pathlib.Path(temporary.name)
        cls.bundle = cls.shared / "net.ffb"
        shown = tiny_bundle.make(cls.shared)
        cls.slow = shown["original"]
        cls.quick = cls.slow.replace("o", "s1")
        cls.sha256 = shown["manifest_sha256"]
        cls.data = f"idx:{cls.shared}"

    def pool(self, quick_ms, slow_ms, **changes):
        """A file with the smallest subnet and the original, whose latencies are what the test wants."""
        entries = [{"subnet": self.quick, "latency_ms": quick_ms, "relative": 1, "accuracy": 0.5},
                   {"subnet": self.slow, "latency_ms": slow_ms, "relative": slow_ms / quick_ms, "accuracy": 0.9}]
        document = {"format": "fleetfit-pool", "version": 1, "device": "local", "bundle_sha256": self.sha256, "budget_ms": 1,
                    "best": self.quick, "entries": entries} | changes
        path = self.folder / "pool.json"
        path.write_text(json.dumps(document))
        return path

    def command(self, pool, budget_ms, *flags):
        return ["--store", "memory:", "run", self.bundle, "--pool", pool, "--budget-ms", budget_ms, "--events", self.folder / "events.jsonl", *flags]

    def events(self):
        return [json.loads(line) for line in (self.folder / "events.jsonl").read_text().splitlines()]

    def start(self, *args):
        process = subprocess.Popen([cli.program(), *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   encoding="utf-8")
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def wait_for_event(self, kind):
        for _ in range(600):
            if (self.folder / "events.jsonl").exists():
                found = [e for e in self.events() if e["event"] == kind]
                if found:
                    return found[0]
            time.sleep(0.05)
        self.fail(f"no event {kind}")


class Data(RunCase):
    def test_serves_images_and_tells_accuracy(self):
        summary = self.succeed_json(*self.command(self.pool(100, 200), 1000, "--data", self.data, "--seconds", 0.3, "--rate", 100))
        self.assertEqual(summary["requests"], sum(use["requests"] for use in summary["subnets"]))
        self.assertGreater(summary["requests"], 3)
        self.assertLess(summary["requests"], 40)
        self.assertEqual(summary["within_budget"], 1)
        self.assertEqual(summary["switches"], 0)
        self.assertEqual([use["subnet"] for use in summary["subnets"]], [self.slow])
        self.assertTrue(0 <= summary["accuracy"] <= 1)
        self.assertGreater(summary["peak_memory_bytes"], summary["prepared_bytes"])
        self.assertGreater(summary["bundle_bytes"], summary["model_bytes"])
        self.assertEqual(summary["memory_limit_bytes"], 256 << 20)
        self.assertEqual(sum(p["requests"] for p in summary["load"]["phases"]), summary["requests"])
        self.assertTrue(summary["budget_met"])
        self.assertEqual([e["event"] for e in self.events()], ["started"])
        self.assertEqual(self.events()[0]["to"], self.slow)

    def test_goes_up_when_there_is_room(self):
        # The pool was made on a far slower machine, where only the quick one was within the budget.
        self.succeed(*self.command(self.pool(1000, 2000), 1500, "--data", self.data, "--seconds", 1.5, "--quiet"))
        switches = [e for e in self.events() if "switch_us" in e]
        self.assertEqual([(e["from"], e["to"], e["reason"]) for e in switches], [(self.quick, self.slow, "room")])
        self.assertLess(switches[0]["ratio"], 1)

    def test_takes_the_quickest_when_nothing_fits_and_fails_in_the_end(self):
        outcome = cli.run(*self.command(self.pool(1e-6, 1.9e-6), 2e-6, "--data", self.data, "--seconds", 1.5, "--json"))
        self.assertEqual(outcome.status, 1, outcome)
        summary = self.parse_json(outcome)
        self.assertFalse(summary["budget_met"])
        self.assertEqual(summary["within_budget"], 0)
        kinds = [(e["event"], e.get("reason")) for e in self.events()]
        self.assertEqual(kinds, [("started", None), ("switch", "nothing fits"), ("nothing fits", None)])

    def test_speaks_to_people_too(self):
        text = self.succeed(*self.command(self.pool(100, 200), 1000, "--data", self.data, "--seconds", 0.2, "--quiet")).stdout
        for word in (self.slow, "requests", "within 1000 ms", "accuracy", "0 switches"):
            self.assertIn(word, text)

    def test_interrupted_it_still_tells_what_was(self):
        process = self.start(*self.command(self.pool(100, 200), 1000, "--data", self.data, "--seconds", 60, "--rate", 50, "--json"))
        self.wait_for_event("started")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, errors), (0, ""))
        self.assertIn("requests", json.loads(output))


class Lines(RunCase):
    def test_answers_lines_and_survives_garbage(self):
        image = [0.5] * (SIZE * SIZE)
        npy64 = base64.b64encode(npy(image, (1, 1, SIZE, SIZE))).decode()
        requests = [json.dumps({"id": 1, "input": image}), "garbage", "", json.dumps({"id": "b", "input": {"npy_base64": npy64}}),
                    json.dumps({"id": 3, "input": [1, 2]}), "[" * 5000, "x" * 200_000, "\udcff", json.dumps({"id": 4, "input": image})]
        text = "\n".join(requests).encode(errors="surrogateescape")  # the last line has no end
        command = [cli.program(), *map(str, self.command(self.pool(100, 200), 1000, "--stdin", "--json"))]
        done = subprocess.run(command, input=text, capture_output=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        *answers, summary = map(json.loads, done.stdout.decode().splitlines())
        self.assertEqual([a["id"] for a in answers], [1, None, "b", 3, None, None, None, 4])
        self.assertEqual(["error" in a for a in answers], [False, True, False, True, True, True, True, False])
        self.assertEqual(answers[3]["error"], f"request: input: expected {SIZE * SIZE} values, found 2")
        self.assertIn("longer than", answers[5]["error"])
        self.assertEqual(answers[0]["subnet"], self.slow)
        self.assertEqual(len(answers[0]["scores"]), CLASSES)
        self.assertEqual(answers[0]["class"], max(range(CLASSES), key=answers[0]["scores"].__getitem__))
        self.assertEqual(answers[0]["scores"], answers[2]["scores"])
        self.assertGreater(answers[0]["latency_ms"], 0)
        self.assertEqual(summary["summary"]["requests"], 3)


class Http(RunCase):
    def ask(self, path, body=None, headers={}):
        request = urllib.request.Request(f"http://{self.address}{path}", data=body, headers={"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def test_answers_predictions_and_status(self):
        process = self.start(*self.command(self.pool(100, 200), 1000, "--listen", "127.0.0.1:0", "--json"))
        self.address = self.wait_for_event("listening")["address"]
        image = [0.5] * (SIZE * SIZE)
        status, answer = self.ask("/v1/predict", json.dumps({"id": 9, "input": image}).encode())
        self.assertEqual((status, answer["id"], answer["subnet"]), (200, 9, self.slow))
        status, answer = self.ask("/v1/status")
        self.assertEqual((status, answer["requests"], answer["input_shape"]), (200, 1, [1, 1, SIZE, SIZE]))
        for path, body, expected in (("/v1/predict", b"garbage", 400), ("/v1/predict", b"", 400), ("/v1/predict", b'{"input": [1]}', 400),
                                     ("/v1/predict", None, 405), ("/v1/status", b"x", 405), ("/", None, 404), ("/%00%ff", None, 404),
                                     ("/v1/predict", b"x" * 1_000_000, 413)):
            try:
                status, answer = self.ask(path, body)
            except (urllib.error.URLError, ConnectionError):  # too much: the server need not take all of it
                self.assertEqual(expected, 413)
                continue
            self.assertEqual((path, status), (path, expected))
            self.assertIn("error", answer)
        for host in ("example.org", "127.evil.com", "127.0.0.1", "127.0.0.1:1", "localhost:1"):
            self.assertEqual(self.ask("/v1/status", headers={"Host": host})[0], 400, host)
        for origin in ("http://example.org", "null", "http://127.0.0.1:1"):
            self.assertEqual(self.ask("/v1/status", headers={"Origin": origin})[0], 403, origin)
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            self.assertEqual(self.ask("/v1/predict", b"{}", headers={"Content-Type": kind})[0], 415, kind)
        self.assertEqual(self.ask("/v1/status")[1]["requests"], 1)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, errors), (0, ""))
        self.assertEqual(json.loads(output)["requests"], 1)


class BadInput(RunCase):
    def refuse_run(self, pool, *flags, naming, budget_ms=1000):
        self.refuse(*self.command(pool, budget_ms, *flags), naming=naming)

    def test_pools_that_do_not_fit(self):
        data = ("--data", self.data)
        self.refuse_run(self.pool(1, 2, bundle_sha256="0" * 64), *data, naming="it is a pool of another bundle")
        entries = [{"subnet": "o-x9", "latency_ms": 1, "relative": 1, "accuracy": 0.5}]
        self.refuse_run(self.pool(1, 2, best="o-x9", entries=entries), *data, naming="pool.json: o-x9")
        self.refuse_run(self.folder / "missing.json", *data, naming="missing.json")
        (self.folder / "pool.json").write_text("{")
        self.refuse_run(self.folder / "pool.json", *data, naming="pool.json")

    def test_bundles_that_are_damaged(self):
        raw = bytearray(self.bundle.read_bytes())
        raw[len(raw) // 2] ^= 1
        broken = self.folder / "broken.ffb"
        broken.write_bytes(raw)
        self.refuse("--store", "memory:", "run", broken, "--pool", self.pool(1, 2), "--budget-ms", 5, "--data", self.data, naming="broken.ffb")

    def test_flags_that_make_no_sense(self):
        pool = self.pool(1, 2)
        self.refuse_run(pool, naming="--data, --stdin or --listen")
        self.refuse_run(pool, "--stdin", "--listen", "127.0.0.1:0", naming="cannot both")
        self.refuse_run(pool, "--listen", "0.0.0.0:8080", naming="0.0.0.0:8080")
        self.refuse_run(pool, "--stdin", "--tail", "p101", naming="tail")
        self.refuse_run(pool, "--stdin", "--memory", "lots", naming="memory")
        self.refuse_run(pool, "--stdin", "--device", "nowhere", naming="nowhere")
        self.refuse_run(pool, "--stdin", "--search-again", naming="--data")
        self.refuse_run(pool, "--stdin", budget_ms=0, naming="--budget-ms")
        self.refuse_run(pool, "--data", "idx:/nowhere", naming="/nowhere")
        (self.folder / "events.jsonl").mkdir()
        outcome = cli.run(*self.command(pool, 1000, "--stdin"))
        self.assertEqual((outcome.status, outcome.stdout), (1, ""))
        self.assertIn("events.jsonl: cannot be written", outcome.stderr)


if __name__ == "__main__":
    cli.main()
