"""fleetfit learn train, apply, bulk and eval."""
import csv
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import cli

# Milliseconds that operators add (none, skip, 1x1, 3x3, pool) on each device, and what every network takes.
DEVICES = {"a": (1, (0, .05, 1, 2, .3)), "b": (2, (0, .1, 1, 5, 1)), "c": (10, (0, 1, 30, 40, 9)), "d": (.5, (0, .01, .2, 1, .1)),
           "e": (5, (0, .1, 3, 30, 2)), "f": (1, (0, .05, 2, 2.2, .5)), "new": (3, (0, .1, 3, 7, 1))}
REFERENCES = ["111111", "222111", "333311", "444414"]
QUICK = ["--effort", .05, "--members", 3, "--optimizers", 1]


def latency(device, ops):
    base, costs = DEVICES[device]
    return base + sum(costs[int(op)] for op in ops)


def accuracy(ops):
    return 80 + sum((1 + .1 * edge) * (.2, .2, 1.3, 2, .4)[int(op)] for edge, op in enumerate(ops))


def overridden(arguments, more):
    """The arguments with flags replaced by those of `more`: a flag may be given but once."""
    given = set(more)
    kept = list(arguments)
    for flag in [word for word in kept if str(word).startswith("--") and word in given]:
        place = kept.index(flag)
        del kept[place:place + 2]
    return [*kept, *more]


class Learn(cli.Case):
    def setUp(self):
        super().setUp()
        designs = ["".join(ops) for ops in itertools.product("01234", repeat=6)]
        self.designs = random.Random(1).sample(designs, 200)
        self.table = self.write("latency.csv", ["ops", *(d for d in DEVICES if d != "new")],
                                [[ops, *(latency(d, ops) for d in DEVICES if d != "new")] for ops in self.designs])
        self.accuracy = self.write("accuracy.csv", ["ops", "top1"], [[ops, accuracy(ops)] for ops in self.designs])
        self.features = self.write("features.csv", ["device", *(f"ref:nasbench201@1:{ops}" for ops in REFERENCES)],
                                   [[d, *(latency(d, ops) for ops in REFERENCES)] for d in DEVICES])
        self.model = self.folder / "model.json"

    def write(self, name, header, rows):
        path = self.folder / name
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)
        return path

    def train_arguments(self, *more):
        return overridden(["learn", "train", "--space", "nasbench201", "--table", self.table, "--device-features", self.features, "--accuracy",
                           f"table:{self.accuracy}#top1", "-o", self.model, *QUICK], more)

    def apply_arguments(self, *more):
        return overridden(["learn", "apply", self.model, "--device-features", self.features, "--device", "new"], more)

    def test_a_model_answers_for_a_device_that_it_was_not_trained_with(self):
        trained = self.succeed_json(*self.train_arguments())
        self.assertEqual((trained["space"], trained["designs"], sorted(trained["devices"])), ("nasbench201", 200, list("abcdef")))
        self.assertGreater(trained["rank_correlation"], 0.8)
        self.assertFalse(pathlib.Path(f"{self.model}.part").exists())

        answer = self.succeed_json(*self.apply_arguments("--budget-ms", 25))
        self.assertRegex(answer["design"], "^[0-4]{6}$")
        self.assertLess(latency("new", answer["design"]), 27)
        self.assertLessEqual(answer["risk"]["latency_ms"], 0.5)
        sure = self.succeed_json(*self.apply_arguments("--budget-ms", 25, "--sure", 0.95))
        self.assertLessEqual(sure["risk"]["latency_ms"], 0.05)
        self.assertLessEqual(sure["predicted"]["latency_ms"], answer["predicted"]["latency_ms"] + 1e-9)
        self.refuse(*self.apply_arguments("--budget-ms", 25, "--sure", 2), naming="--sure")
        self.assertGreater(accuracy(answer["design"]), 84)
        self.assertAlmostEqual(answer["predicted"]["latency_ms"], latency("new", answer["design"]), delta=8)
        self.assertGreater(answer["elapsed_us"], 0)
        self.assertIn(answer["by"], ("optimizer", "search"))

        cheap = self.succeed_json(*self.apply_arguments("--weights", "0,20"))
        rich = self.succeed_json(*self.apply_arguments("--weights", "0.001"))
        self.assertLess(latency("new", cheap["design"]), latency("new", rich["design"]))
        self.assertLess(accuracy(cheap["design"]), accuracy(rich["design"]))

        impossible = cli.run(*self.apply_arguments("--budget-ms", 0.001, "--json"))
        self.assertEqual(impossible.status, 1, impossible)
        self.assertFalse(json.loads(impossible.stdout)["keeps_limits"])
        self.assertIn("over_limit", json.loads(impossible.stdout)["doubts"])
        self.assertIn("by ", self.succeed(*self.apply_arguments("--budget-ms", 25)).stdout)

        many = self.folder / "many.csv"
        bulk = self.succeed_json("learn", "bulk", self.model, "--device-features", self.features, "--devices", 300, "-o", many)
        self.assertEqual(bulk["devices"], 300)
        self.assertGreater(bulk["designs"], 5)
        self.assertGreater(bulk["peak_memory_bytes"], 1e6)
        with open(many) as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 300)
        self.assertEqual(sum(int(row["within"]) for row in rows), bulk["within"])

        self.refuse_bad_features()

    def refuse_bad_features(self):
        with open(self.features) as file:
            rows = list(csv.reader(file))
        few = self.write("few.csv", rows[0][:3], [row[:3] for row in rows[1:]])
        self.fail_with("ref:nasbench201@1:333311", *self.apply_arguments("--budget-ms", 5, "--device-features", few))
        other = self.write("other.csv", [rows[0][0], *(name.replace("@1", "@7") for name in rows[0][1:])], rows[1:])
        self.fail_with("ref:nasbench201@1:111111", *self.apply_arguments("--budget-ms", 5, "--device-features", other))
        absurd = self.write("absurd.csv", rows[0], [["new", -3, 1, 1, 1]])
        self.fail_with("absurd.csv", *self.apply_arguments("--budget-ms", 5, "--device-features", absurd))
        missing = self.write("missing.csv", rows[0], [["new", latency("new", REFERENCES[0]), "", latency("new", REFERENCES[2]), ""]])
        answer = self.succeed_json(*self.apply_arguments("--budget-ms", 25, "--device-features", missing))
        self.assertEqual(answer["missing_features"], 2)
        self.assertIn("filled_in", answer["doubts"])
        self.fail_with("nobody", "learn", "apply", self.model, "--device-features", self.features, "--device", "nobody", "--budget-ms", 5)
        self.fail_with("--budget-ms", *self.apply_arguments())
        self.fail_with("energies", *self.apply_arguments("--weights", "1,1"))
        self.fail_with("latency_ms", *self.apply_arguments("--budget-ms", -1))
        damaged = self.folder / "damaged.json"
        damaged.write_text(self.model.read_text().replace('"fleetfit-learned"', '"other"'))
        self.fail_with("damaged.json: format is 'other'", "learn", "apply", damaged, "--device-features", self.features, "--device", "new",
                       "--budget-ms", 5)

    def fail_with(self, text, *args):
        outcome = cli.run(*args)
        self.assertEqual(outcome.status, 2, outcome)
        self.assertIn(text, outcome.stderr, outcome)
        self.assertEqual(outcome.stderr.count("\n"), 1, outcome)

    def test_exploration_measures_fewer_designs(self):
        trained = self.succeed_json(*self.train_arguments("--first-designs", 40, "--rounds", 1, "--round-designs", 20))
        self.assertEqual((trained["designs"], trained["rounds"], trained["measured"]), (60, 1, 360))
        self.assertFalse(pathlib.Path(f"{self.model}.samples").exists())
        self.succeed_json(*self.apply_arguments("--budget-ms", 25))

    def test_devices_that_are_no_columns_are_measured_by_a_source(self):
        new = self.write("new.csv", ["ops", "ms"], [[ops, latency("new", ops)] for ops in self.designs])
        trained = self.succeed_json(*self.train_arguments("--measure", f"new=table:{new}#ms"))
        self.assertEqual(len(trained["devices"]), 7)

    def test_a_study_leaves_devices_out(self):
        result = self.succeed_json("learn", "eval", "--space", "nasbench201", "--table", self.table, "--device-features", self.features,
                                   "--accuracy", f"table:{self.accuracy}#top1", "--leave-out", "a,c", "--budgets", 4, *QUICK)
        self.assertEqual([device["device"] for device in result["devices"]], ["a", "c"])
        self.assertEqual(len({way["way"] for way in result["ways"]}), 5)
        self.assertEqual({way["budgets"] for way in result["ways"]}, {"range", "quantiles"})
        self.assertTrue(all(0 <= way["kept"] <= 1 for way in result["ways"]))
        # The table has few designs, and only of those the truth is known: this way chooses among them.
        best = [outcome for outcome in result["outcomes"] if outcome["way"] == "best network of the nearest known device"]
        self.assertEqual(len(best), 16)
        for outcome in best:  # the best within a budget is what the table says
            device = outcome["device"]
            within = [accuracy(ops) for ops in self.designs if latency(device, ops) <= outcome["budget_ms"]]
            self.assertAlmostEqual(outcome["best_accuracy"], max(within), places=6)

    def test_a_training_that_is_killed_goes_on(self):
        arguments = self.train_arguments("--effort", .2)
        part = pathlib.Path(f"{self.model}.part")
        killed = subprocess.Popen([cli.program(), *map(str, arguments)], start_new_session=True, stdout=subprocess.DEVNULL)
        for _ in range(600):
            if part.exists():
                break
            time.sleep(0.1)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
        self.assertTrue(part.exists())
        self.assertFalse(self.model.exists())
        self.succeed_json(*arguments)
        self.assertFalse(part.exists())
        self.assertTrue(self.model.exists())

    def test_bad_input_is_one_line(self):
        self.fail_with("nowhere.csv", *self.train_arguments("--device-features", self.folder / "nowhere.csv"))
        self.fail_with("zzz", *self.train_arguments("--devices", "a,b,zzz"))
        self.fail_with("DEVICE=SOURCE", *self.train_arguments("--measure", "new"))
        self.fail_with("there is no device 'other'", *self.train_arguments("--measure", f"other=table:{self.table}#a"))
        self.fail_with("--first-designs", *self.train_arguments("--rounds", 2, "--first-designs", 5))
        self.fail_with("fbnet", "learn", "train", "--space", "fbnet", "--table", self.table, "--device-features", self.features,
                       "--accuracy", f"table:{self.accuracy}#top1", "-o", self.model)


if __name__ == "__main__":
    cli.main()
