"""fleetfit agent with a real server: jobs are done and counted once, whatever is killed in between."""
import hashlib
import json
import re
import subprocess
import time
import urllib.error
import urllib.request

import cli
import tiny_bundle

LONG_S = 120


def wait_until(what, timeout_s=LONG_S):
    """Asks until the answer is true, and gives it."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        answer = what()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError("it did not come about")


class Server:
    """`fleetfit server`, which can be killed and started again on the same port."""

    def __init__(self, folder):
        self.folder = folder
        self.store = ["--store", f"sqlite:{folder / 'fleet.db'}"]
        created = cli.run(*self.store, "token", "create", "--role", "admin", "--json")
        assert created.status == 0, created
        self.token = json.loads(created.stdout)["token"]
        self.port = 0
        self.start()

    def start(self):
        command = [cli.program(), *self.store, "server", "--listen", f"127.0.0.1:{self.port}", "--files", str(self.folder / "files"), "--json"]
        with open(self.folder / "server.log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, encoding="utf-8")
        text = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", text)):
            line = self.process.stdout.readline()
            assert line, f"the server ended: {(self.folder / 'server.log').read_text()}"
            text += line
        self.port = int(found[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def call(self, method, path, body=None):
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, method=method,
                                         headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)

    def upload(self, file):
        return self.call("POST", f"/files?name={file.name}", file.read_bytes())["hash"]


class Agent(cli.Case):
    def setUp(self):
        super().setUp()
        self.server = Server(self.folder)
        self.addCleanup(lambda: self.server.kill())
        self.agent = None
        self.addCleanup(self.kill_agent)
        self.token_file = self.folder / "token"
        added = self.server.call("POST", "/devices", {"name": "pi4"})
        self.token_file.write_text(added["token"] + "\n")
        self.token_file.chmod(0o600)

    def start_agent(self, *flags):
        command = [cli.program(), "agent", "--server", self.server.url, "--token-file", self.token_file, "--name", "pi4", "--state", self.folder / "state",
                   "--heartbeat", "0.2", *flags]
        with open(self.folder / "agent.log", "a", encoding="utf-8") as log:
            self.agent = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stderr=log)

    def kill_agent(self):
        if self.agent:
            self.agent.kill()
            self.agent.wait()

    def log(self):
        return (self.folder / "agent.log").read_text()

    def add_job(self, kind, request, **more):
        return self.server.call("POST", "/jobs", {"device": "pi4", "kind": kind, "request": request, **more})["id"]

    def job(self, number):
        try:
            return self.server.call("GET", f"/jobs/{number}")
        except urllib.error.URLError:
            return {"state": "unknown"}

    def ended(self, number):
        try:
            return wait_until(lambda: (job := self.job(number))["state"] in ("finished", "failed", "cancelled") and job)
        except AssertionError:
            self.fail(f"{self.job(number)}\n{self.log()[-3000:]}\n{(self.folder / 'server.log').read_text()[-2000:]}")

    def small_model(self, *flags):
        model = self.folder / "net.onnx"
        if not model.exists():
            self.succeed("model", "zoo", "resnet20", *(flags or ("--width", 0.25, "--image", 8)), "-o", model)
        return model

    def test_measures_a_model_and_the_server_keeps_it(self):
        model = self.server.upload(self.small_model())
        self.assertEqual(model, hashlib.sha256(self.small_model().read_bytes()).hexdigest())
        job = self.add_job("measure", {"model": model, "name": "net.onnx", "max_time_s": 0.5, "ops": True})
        self.start_agent()
        job = self.ended(job)
        self.assertEqual(job["state"], "finished", job)
        self.assertIn(job["result"]["status"], ("ok", "unstable"))
        self.assertGreater(job["result"]["latency_ms"]["median"], 0)
        self.assertGreater(len(job["result"]["ops"]), 5)
        kept = self.server.call("GET", "/measurements?device=pi4")["items"]
        self.assertEqual(len(kept), 1)
        device = self.server.call("GET", "/devices/pi4")
        self.assertEqual(device["state"], "online")
        self.assertIn("core", device["hardware"])
        self.assertNotIn(self.token_file.read_text().strip(), self.log())
        self.agent.terminate()
        self.assertEqual(self.agent.wait(timeout=30), 0)

    def test_nothing_is_lost_when_agent_and_server_are_killed(self):
        model = self.server.upload(self.small_model())
        jobs = [self.add_job("measure", {"model": model, "name": "net.onnx", "max_time_s": 0.3, "as": f"s{i}"}) for i in range(3)]
        self.start_agent()
        self.ended(jobs[0])
        # The server goes away while a job runs; its result waits on disk, also over the agent's own end.
        wait_until(lambda: self.job(jobs[1])["state"] == "running")
        self.server.kill()
        wait_until(lambda: any((self.folder / "state/spool/results").iterdir()))
        self.kill_agent()
        self.start_agent()
        time.sleep(0.3)
        self.server.start()
        self.assertEqual([self.ended(job)["state"] for job in jobs], ["finished"] * 3)
        for i in range(3):
            self.assertEqual(len(self.server.call("GET", f"/measurements?device=pi4.s{i}")["items"]), 1)

    def test_bad_jobs_fail_with_a_reason_and_others_go_on(self):
        self.start_agent()
        model = self.server.upload(self.small_model("--image", 64))  # large enough for the most runs to take a while
        slow = self.add_job("measure", {"model": model, "name": "net.onnx", "max_time_s": 60, "target_ci": 0.01}, limits={"seconds": 1})
        job = self.ended(slow)
        self.assertIn("longer than 1 s", job["reason"], job)
        fat = self.add_job("measure", {"model": model, "name": "net.onnx", "max_time_s": 60, "target_ci": 0.01}, limits={"memory_bytes": 1000})
        self.assertIn("bytes of memory", self.ended(fat)["reason"])
        exec_ = self.add_job("measure", {"model": model, "name": "net.onnx", "settings": {"runtime": "exec:/bin/true"}})
        self.assertIn("--allow-exec", self.ended(exec_)["reason"])
        cancelled = self.add_job("measure", {"model": model, "name": "net.onnx", "max_time_s": 60, "target_ci": 0.01})
        wait_until(lambda: self.job(cancelled)["state"] == "running")
        self.server.call("DELETE", f"/jobs/{cancelled}")
        self.assertEqual(self.ended(cancelled)["state"], "cancelled")
        good = self.add_job("measure", {"model": model, "name": "net.onnx", "max_time_s": 0.3})
        self.assertEqual(self.ended(good)["state"], "finished")

    def test_adapts_a_bundle_and_serves_it(self):
        tiny_bundle.make(self.folder)
        bundle = self.server.upload(self.folder / "net.ffb")
        self.start_agent()
        data = f"idx:{self.folder}"
        unknown = self.add_job("run", {"bundle": bundle, "data": data, "budget_ms": 50, "seconds": 1})
        self.assertIn("adapt or deploy", self.ended(unknown)["reason"])
        adapted = self.ended(self.add_job("adapt", {"bundle": bundle, "data": data, "budget_ms": 50}))
        self.assertEqual(adapted["state"], "finished", adapted)
        self.assertEqual(adapted["result"]["device"], "pi4")
        served = self.ended(self.add_job("run", {"bundle": bundle, "data": data, "budget_ms": 50, "seconds": 1.5}))
        self.assertEqual(served["state"], "finished", served)
        self.assertGreater(served["result"]["requests"], 0)
        wait_until(lambda: self.server.call("GET", "/events?device=pi4&kind=latency")["items"])
        event = self.server.call("GET", "/events?device=pi4&kind=latency")["items"][-1]
        self.assertEqual(event["body"]["budget_ms"], 50)
        self.assertGreater(event["body"]["latency_ms"], 0)

    def test_bad_flags_are_refused(self):
        self.refuse("agent", "--server", "http://fleet.example:80", "--token-file", self.token_file, "--state", self.folder / "s", naming="https")
        self.refuse("agent", "--token-file", self.token_file, naming="--server")
        self.refuse("agent", "--server", self.server.url, naming="--token-file")
        self.refuse("agent", "--server", self.server.url, "--token-file", self.token_file, "--name", "a/b", naming="name")
        self.refuse("agent", "--server", self.server.url, "--token-file", self.token_file, "--heartbit", 3, naming="--heartbit")
        self.token_file.chmod(0o644)
        outcome = self.refuse("agent", "--server", self.server.url, "--token-file", self.token_file, naming="chmod 600")
        self.assertNotIn(self.token_file.read_text().strip(), outcome.stderr)


if __name__ == "__main__":
    cli.main()
