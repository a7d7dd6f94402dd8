"""fleetfit fit on devices with agents, over a real server: one goes away in the middle."""
import pathlib
import subprocess

import cli
import fleet
import tiny_bundle


class FitAgents(cli.Case):
    def setUp(self):
        super().setUp()
        tiny_bundle.make(self.folder)
        self.server = fleet.Server(self.folder)
        self.addCleanup(self.server.kill)
        self.agents = [fleet.Agent(self.server, name) for name in ("here", "gone")]
        for agent in self.agents:
            self.addCleanup(agent.kill)
            agent.start()
            fleet.wait_until(lambda name=agent.name: self.server.call("GET", f"/devices/{name}")["state"] == "online")
        token = self.folder / "admin.token"
        token.touch(mode=0o600)
        token.write_text(self.server.token)
        self.file = self.folder / "fleet.yaml"
        self.file.write_text(f"bundle: net.ffb\ndata: idx:{self.folder}\nsearch_images: 20\nmeasure_s: 0.2\nmeasurements: 4\nconfirmations: 2\n"
                             f"server: {self.server.url}\ntoken_file: admin.token\nwait_s: 3\ndevices:\n"
                             "  - {name: a, agent: here, budget: {latency: 500%}}\n  - {name: b, agent: gone, budget: {latency: 500%}}\n")
        self.command = ["--store", f"sqlite:{self.folder}/mine.db", "fit", self.file, "-o", self.folder / "out", "--json", "--quiet"]

    def states(self, report):
        return {device["device"]: device["state"] for device in report["devices"]}

    def measured_by(self, agent):
        return self.server.call("GET", f"/jobs?device={agent.name}&state=finished")["items"]

    def test_an_agent_that_goes_away_is_waited_for_and_told_and_the_others_go_on(self):
        here, gone = self.agents
        fit = subprocess.Popen([cli.program(), *map(str, self.command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        fleet.wait_until(lambda: self.measured_by(gone))
        gone.kill()
        out, err = fit.communicate(timeout=fleet.LONG_S)
        outcome = cli.Outcome("fit", fit.returncode, out, err)
        self.assertEqual(outcome.status, 1, outcome)
        report = self.parse_json(outcome)
        self.assertEqual(self.states(report), {"a": "fitted", "b": "failed"})
        page = pathlib.Path(self.folder / "out/report.html").read_text()
        self.assertIn("the agent gone has ended no job in 3 s", page)
        # Back again: what it had measured is not measured again.
        before = len(self.measured_by(gone))
        gone.start()
        again = self.succeed_json(*self.command[:-2], "--quiet")
        self.assertEqual(self.states(again), {"a": "fitted", "b": "fitted"})
        # What is found for one device is a candidate for the others, which may change their pools, not what was measured.
        times = [{point["design"]: point["latency_ms"]["measured"] for point in one["devices"][0]["measured"]} for one in (report, again)]
        self.assertLessEqual(times[0].items(), times[1].items())
        self.assertGreater(len(self.measured_by(gone)), before)


if __name__ == "__main__":
    cli.main()
