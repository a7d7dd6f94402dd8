"""fleetfit agent with a real server: jobs are done and counted once, whatever is killed in between."""
import hashlib
import time
import urllib.error

import cli
import tiny_bundle
from fleet import Agent as Program
from fleet import Server, wait_until

class Agent(cli.Case):
    def setUp(self):
        super().setUp()
        self.server = Server(self.folder)
        self.addCleanup(lambda: self.server.kill())
        self.agent = Program(self.server, "pi4")
        self.addCleanup(self.agent.kill)

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
            self.fail(f"{self.job(number)}\n{self.agent.log()[-3000:]}\n{(self.folder / 'server.log').read_text()[-2000:]}")

    def small_model(self, *flags):
        model = self.folder / "net.onnx"
        if not model.exists():
            self.succeed("model", "zoo", "resnet20", *(flags or ("--width", 0.25, "--image", 8)), "-o", model)
        return model

    def test_measures_a_model_and_the_server_keeps_it(self):
        model = self.server.upload(self.small_model())
        self.assertEqual(model, hashlib.sha256(self.small_model().read_bytes()).hexdigest())
        job = self.add_job("measure", {"model": model, "name": "net.onnx", "max_time_s": 0.5, "ops": True})
        self.agent.start()
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
        self.assertNotIn(self.agent.token_file.read_text().strip(), self.agent.log())
        self.agent.process.terminate()
        self.assertEqual(self.agent.process.wait(timeout=30), 0)

    def test_nothing_is_lost_when_agent_and_server_are_killed(self):
        model = self.server.upload(self.small_model())
        jobs = [self.add_job("measure", {"model": model, "name": "net.onnx", "max_time_s": 0.3, "as": f"s{i}"}) for i in range(3)]
        self.agent.start()
        self.ended(jobs[0])
        # The server goes away while a job runs; its result waits on disk, also over the agent's own end.
        wait_until(lambda: self.job(jobs[1])["state"] == "running")
        self.server.kill()
        wait_until(lambda: any((self.agent.state / "spool/results").iterdir()))
        self.agent.kill()
        self.agent.start()
        time.sleep(0.3)
        self.server.start()
        self.assertEqual([self.ended(job)["state"] for job in jobs], ["finished"] * 3)
        for i in range(3):
            self.assertEqual(len(self.server.call("GET", f"/measurements?device=pi4.s{i}")["items"]), 1)

    def test_bad_jobs_fail_with_a_reason_and_others_go_on(self):
        self.agent.start()
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
        self.agent.start()
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
        self.refuse("agent", "--server", "http://fleet.example:80", "--token-file", self.agent.token_file, "--state", self.folder / "s", naming="https")
        self.refuse("agent", "--token-file", self.agent.token_file, naming="--server")
        self.refuse("agent", "--server", self.server.url, naming="--token-file")
        self.refuse("agent", "--server", self.server.url, "--token-file", self.agent.token_file, "--name", "a/b", naming="name")
        self.refuse("agent", "--server", self.server.url, "--token-file", self.agent.token_file, "--heartbit", 3, naming="--heartbit")
        self.agent.token_file.chmod(0o644)
        outcome = self.refuse("agent", "--server", self.server.url, "--token-file", self.agent.token_file, naming="chmod 600")
        self.assertNotIn(self.agent.token_file.read_text().strip(), outcome.stderr)


if __name__ == "__main__":
    cli.main()
