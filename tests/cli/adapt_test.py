"""fleetfit adapt: the best subnet for a budget, pools, tables; bad input."""
import json
import pathlib
import tempfile

import cli
import tiny_bundle


class AdaptCase(cli.Case):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="fleetfit-adapt-")
        cls.addClassCleanup(temporary.cleanup)
        cls.shared = pathlib.Path(temporary.name)
        cls.shown = tiny_bundle.make(cls.shared)
        cls.bundle = cls.shared / "net.ffb"
        cls.data = f"idx:{cls.shared}"

    def command(self, budget_ms, *flags, bundle=None):
        return ["--store", "memory:", "adapt", bundle or self.bundle, "--data", self.data, "--budget-ms", budget_ms, "--samples", 20, "-o",
                self.folder / "pool.json", *flags]


class Budget(AdaptCase):
    def test_a_wide_budget_gives_a_pool_in_which_slower_is_better(self):
        report = self.succeed_json(*self.command(1000))
        pool = json.loads((self.folder / "pool.json").read_text())
        self.assertEqual(pool["bundle_sha256"], self.shown["manifest_sha256"])
        self.assertEqual(pool["best"], report["best"]["subnet"])
        self.assertIn(pool["best"], [entry["subnet"] for entry in pool["entries"]])
        for quicker, slower in zip(pool["entries"], pool["entries"][1:]):
            self.assertLess(quicker["latency_ms"], slower["latency_ms"])
            self.assertLess(quicker["accuracy"], slower["accuracy"])
        self.assertGreater(report["evaluated"], 1)
        self.assertGreater(report["bundle_bytes"], report["model_bytes"])
        self.assertEqual(report["memory_limit_bytes"], (256 + 512) << 20)
        self.assertTrue(0 <= report["reuse"]["saved_fraction"] < 1)

    def test_another_subnet_is_told_beside_the_best(self):
        best = self.succeed_json(*self.command(1000))["best"]
        report = self.succeed_json(*self.command(1000, "--compare", best["subnet"]))
        self.assertEqual(report["compared"]["subnet"], best["subnet"])
        self.assertEqual(report["compared"]["accuracy"], best["accuracy"])
        self.assertNotIn("compared", self.succeed_json(*self.command(1000)))

    def test_data_of_one_device_may_be_shifted(self):
        self.data = f"shifted:100@2:{self.data}"
        self.assertIsNotNone(self.succeed_json(*self.command(1000))["best"])

    def test_a_budget_that_no_subnet_keeps_is_a_goal_not_met(self):
        outcome = cli.run(*self.command(1e-6, "--json"))
        self.assertEqual(outcome.status, 1, outcome)
        self.assertIsNone(self.parse_json(outcome)["best"])
        self.assertFalse((self.folder / "pool.json").exists())

    def test_a_saved_table_takes_the_place_of_profiling(self):
        table = self.folder / "table.json"
        self.succeed_json(*self.command(1000, "--save-table", table))
        self.succeed_json(*self.command(1000, "--table", table))


class BadInput(AdaptCase):
    def test_names_what_is_wrong(self):
        damaged = self.folder / "damaged.ffb"
        content = bytearray(self.bundle.read_bytes())
        content[len(content) // 2] ^= 1
        damaged.write_bytes(content)
        self.refuse(*self.command(10, bundle=damaged), naming="damaged.ffb")
        self.refuse(*self.command(10, "--strategy", "luck"), naming="strategy")
        self.refuse(*self.command(-1), naming="budget")
        self.refuse(*self.command(10, "--compare", "x"), naming="compare")

    def test_images_of_another_size_are_refused(self):
        self.refuse("--store", "memory:", "adapt", self.bundle, "--data", "fashion-mnist", "--budget-ms", 10, "-o", self.folder / "pool.json", naming="28x28")


if __name__ == "__main__":
    cli.main()
