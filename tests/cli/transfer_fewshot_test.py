"""fleetfit transfer fewshot."""
import csv
import itertools
import json
import random

import cli

REFERENCES = ["a", "b", "c", "d"]
COSTS = {"a": (0, .2, 2, 5, 1), "b": (0, .1, 3, 4, 2), "c": (0, .3, 1, 6, .5), "d": (0, .2, 2, 3, 2), "new": (0, .2, 2.5, 5, .8)}


class FewShot(cli.Case):
    def setUp(self):
        super().setUp()
        self.table = self.folder / "table.csv"
        designs = ["".join(ops) for ops in itertools.product("01234", repeat=6)]
        self.rows = [{"ops": ops} for ops in random.Random(1).sample(designs, 400)]
        for row in self.rows:
            for device, costs in COSTS.items():
                row[device] = round(3 + sum(costs[int(op)] for op in row["ops"]), 4)
        self.write()

    def write(self):
        with open(self.table, "w", newline="") as file:
            writer = csv.DictWriter(file, self.rows[0].keys())
            writer.writeheader()
            writer.writerows(self.rows)

    def arguments(self, *more, references=REFERENCES, target="new", samples=8):
        return ["transfer", "fewshot", self.table, "--space", "nasbench201", "--references", ",".join(references), "--target", target,
                "--samples", samples, "--reference-samples", 100, *more]

    def test_a_known_device_is_rehearsed(self):
        result = self.succeed_json(*self.arguments("--trials", 3))
        self.assertGreater(result["srcc"], 0.99)
        self.assertLess(result["mape"], 5)
        self.assertGreater(result["coverage90"], 0.8)
        self.assertEqual([trial["seed"] for trial in result["trials"]], [1, 2, 3])
        self.assertAlmostEqual(result["srcc"], sum(trial["srcc"] for trial in result["trials"]) / 3)
        self.assertEqual(len(set(result["samples_chosen"])), 8)
        self.assertLessEqual(set(result["samples_chosen"]), {row["ops"] for row in self.rows})
        self.assertIn(result["enough"], (True, False))
        self.assertLessEqual(result["expected_srcc"], result["ceiling"])

    def test_threads_change_nothing_and_seeds_do(self):
        one = self.succeed(*self.arguments("--trials", 4, "--threads", 1, "--json")).stdout
        self.assertEqual(self.succeed(*self.arguments("--trials", 4, "--threads", 3, "--json")).stdout, one)
        self.assertNotEqual(self.succeed(*self.arguments("--trials", 4, "--seed", 9, "--json")).stdout, one)

    def test_a_new_device_is_told_what_to_measure_and_then_predicted(self):
        truth = {row["ops"]: row["new"] for row in self.rows}
        for row in self.rows:
            row["new"] = ""
        self.write()
        first = self.succeed_json(*self.arguments())
        self.assertEqual((first["srcc"], first["enough"], first["measurements"], len(first["measure_next"])), (None, False, 0, 8))
        for row in self.rows:
            if row["ops"] in first["measure_next"]:
                row["new"] = truth[row["ops"]]
        self.write()
        output = self.folder / "predicted.csv"
        second = self.succeed_json(*self.arguments("-o", output))
        self.assertEqual(second["measurements"], 8)
        self.assertEqual(set(second["samples_chosen"]), set(first["measure_next"]))
        self.assertFalse(set(second["measure_next"]) & set(first["measure_next"]))
        with open(output) as file:
            predicted = {row["ops"]: row for row in csv.DictReader(file)}
        self.assertEqual(len(predicted), 400)
        errors = sorted(abs(float(row["new"]) / truth[ops] - 1) for ops, row in predicted.items())
        self.assertLess(errors[200], 0.05)
        self.assertTrue(all(float(row["new low90"]) < float(row["new"]) < float(row["new high90"]) for row in predicted.values()))

    def test_all_predictions_are_written_as_json(self):
        output = self.folder / "predicted.json"
        text = self.succeed(*self.arguments("-o", output)).stdout
        self.assertIn("rank correlation", text)
        document = json.loads(output.read_text())
        self.assertEqual((document["format"], document["version"], document["space"], document["target"]), ("fleetfit-fewshot", 1, "nasbench201", "new"))
        self.assertEqual(len(document["predictions"]), 400)
        low, high = document["predictions"][0]["interval90"]
        self.assertTrue(low < document["predictions"][0]["latency_ms"] < high)

    def test_bad_input_is_named(self):
        for words, arguments in {
            "new is one of the references": self.arguments(references=["a", "new"]),
            "reference a is given twice": self.arguments(references=["a", "b", "a"]),
            "nosuch": self.arguments(target="nosuch"),
            "--samples is 2, at least 3": self.arguments(samples=2),
            "400 measured designs, --samples asks for 401": self.arguments(samples=401),
        }.items():
            with self.subTest(words):
                outcome = cli.run(*arguments)
                self.assertEqual((outcome.status, outcome.stdout), (2, ""), outcome)
                self.assertIn(words, outcome.stderr)
                self.assertEqual(outcome.stderr.count("\n"), 1, outcome)

    def test_a_constant_reference_is_named(self):
        for row in self.rows:
            row["c"] = 4
        self.write()
        outcome = cli.run(*self.arguments())
        self.assertEqual(outcome.status, 2, outcome)
        self.assertIn("reference c has the same latency for all designs", outcome.stderr)


if __name__ == "__main__":
    cli.main()
