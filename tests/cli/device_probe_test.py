"""fleetfit device probe."""
import html.parser
import math
import sqlite3

import cli

# One thread: two that wait for each other on a busy machine take minutes.
QUICK = ["--threads", "1", "--seconds", "0.5"]


class Networks(html.parser.HTMLParser):
    """The circles of a page that stand for networks: name -> class."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "data-name" in attrs:
            self.found.append((attrs["data-name"], attrs["class"]))


class DeviceProbe(cli.Case):
    def setUp(self):
        super().setUp()
        self.store_file = self.folder / "store.db"
        self.store = ["--store", f"sqlite:{self.store_file}"]
        self.page = self.folder / "roofline.html"

    def probe(self, *args):
        return self.succeed_json(*self.store, "device", "probe", *QUICK, *args)

    def networks_of_page(self):
        text = self.page.read_text(encoding="utf-8")
        self.assertNotIn("http", text)
        return Networks(text).found

    def test_gives_facts_rates_and_features(self):
        report = self.probe()
        self.assertEqual(report["threads"], 1)
        self.assertGreater(len(report["hardware"]["cores"]), 0)
        for rate in report["rates"]:
            self.assertEqual(set(rate), {"name", "subject", "unit", "value", "median", "best", "spread", "runs"})
            self.assertTrue(math.isfinite(rate["value"]) and rate["value"] > 0, rate)
            self.assertEqual(report["features"][rate["name"]], rate["value"])
        self.assertNotIn("roofline", report)
        self.assertFalse(self.store_file.exists())

    def test_every_feature_is_documented(self):
        documented = (cli.SOURCE / "docs/probe.md").read_text(encoding="utf-8")
        for name in self.probe()["features"]:
            self.assertIn(f"`{name}`", documented)

    def test_prints_a_table_for_people(self):
        outcome = self.succeed("device", "probe", *QUICK)
        self.assertIn("peak of arithmetic, int8", outcome.stdout)
        self.assertIn("GFLOP/s", outcome.stdout)

    def test_page_holds_every_network_of_the_zoo_once(self):
        report = self.probe("--roofline", self.page)
        zoo = [network["name"] for network in self.succeed_json("model", "zoo")]
        self.assertEqual(sorted(self.networks_of_page()), sorted((name, "hollow") for name in zoo))
        roofline = report["roofline"]
        memory = roofline["slopes"][-1]
        self.assertEqual(memory["name"], "memory")
        for network in roofline["networks"]:
            self.assertIsNone(network["reached"])
            bound = min(roofline["peak_gflop_per_s"], network["gflop"] / network["gbytes"] * memory["gb_per_s"])
            self.assertAlmostEqual(network["bound_gflop_per_s"], bound, delta=1e-9 * bound)

    def test_network_that_was_measured_is_drawn_so(self):
        self.succeed("model", "zoo", "lenet5", "-o", self.folder / "lenet5.onnx")
        self.succeed("model", "zoo", "mobilenet_v2", "--image", "32", "-o", self.folder / "mobilenet_v2.onnx")
        cli.run(*self.store, "measure", self.folder / "lenet5.onnx", self.folder / "mobilenet_v2.onnx", "--max-time", "1")
        # Whether they have settled depends on what else the machine does.
        with sqlite3.connect(self.store_file) as store:
            store.execute("UPDATE measurements SET status = 'ok', reason = ''")

        report = self.probe("--roofline", self.page)
        filled = [name for name, style in self.networks_of_page() if style == "filled"]
        self.assertEqual(filled, ["lenet5"])  # the other one is of another size than the zoo's
        (reached,) = [n for n in report["roofline"]["networks"] if n["reached"]]
        self.assertEqual(reached["reached"]["device"], "local")
        self.assertAlmostEqual(
            reached["reached"]["gflop_per_s"] * reached["reached"]["latency_ms"] / 1e3, reached["gflop"], places=9
        )

    def test_refuses_what_makes_no_sense(self):
        self.refuse("device", "probe", "--seconds", "0", naming="--seconds")
        self.refuse("device", "probe", "--roofline", self.folder / "none/page.html", naming="none/page.html")


if __name__ == "__main__":
    cli.main()
