"""Studies on the command line: driven by ask and tell, looked at, exported, reported."""
import csv
import json
import subprocess

import cli

STUDY = """name: branin
parameters: {training: {x: {range: [-5, 10]}, y: {range: [0, 15]}}}
objective: {minimize: value}
budget: {kind: epochs, max_epochs: 1, max_trials: 12}
algorithm: {model: random}
"""

ACCURACY = """name: limits
parameters: {model: {layers: {values: [18, 34]}}, training: {rate: {range: [0, 1]}}}
objective: {maximize: accuracy}
constraints: {accuracy: 0.9}
budget: {kind: epochs, max_epochs: 4, max_trials: 3}
algorithm: {model: random}
"""


class Study(cli.Case):
    def setUp(self):
        super().setUp()
        self.store = f"sqlite:{self.folder}/store.db"

    def ok(self, *args):
        return self.succeed_json("--store", self.store, "study", *args)

    def no(self, *args, naming):
        self.refuse("--store", self.store, "study", *args, naming=naming)

    def create(self, text=STUDY):
        file = self.folder / "study.yaml"
        file.write_text(text)
        return self.ok("create", file)

    def serve(self, name, *requests):
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run([cli.program(), "--store", self.store, "study", "serve", name],
                              input=lines, capture_output=True, encoding="utf-8", timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [json.loads(line) for line in done.stdout.splitlines()]


class AskAndTell(Study):
    def test_evaluate_one_trial_after_the_other(self):
        self.create()
        for number in range(3):
            trial = self.ok("ask", "branin")
            self.assertEqual(trial["trial"], number)
            self.assertEqual(trial["budget"], {"epochs": 1, "data_fraction": 1.0})
            self.assertTrue(-5 <= trial["params"]["x"] <= 10)
            told = self.ok("tell", "branin", number, "--values", json.dumps({"value": 10 - number}))
            self.assertEqual(told[0]["objective"], [10 - number])
        best = self.ok("best", "branin")
        self.assertEqual((best["trial"], best["objective"]), (2, {"value": 8}))
        self.assertEqual(set(best["params"]["training"]), {"x", "y"})

    def test_evaluate_many_trials_at_once(self):
        self.create()
        trials = self.ok("ask", "branin", "--count", "20")["trials"]
        self.assertEqual([trial["trial"] for trial in trials], list(range(12)))
        lines = "".join(json.dumps({"trial": t["trial"], "values": {"value": t["params"]["x"]}}) + "\n" for t in trials)
        told = subprocess.run([cli.program(), "--store", self.store, "--json", "study", "tell", "branin", "-"],
                              input=lines, capture_output=True, encoding="utf-8", timeout=60)
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertEqual({one["status"] for one in json.loads(told.stdout)}, {"finished"})
        self.assertEqual(self.ok("best", "branin")["objective"]["value"], min(t["params"]["x"] for t in trials))
        self.assertEqual(self.ok("ask", "branin"), {"trials": [], "done": True})

    def test_talk_in_lines(self):
        self.create()
        asked, told, wrong = self.serve("branin", {"ask": 2},
                                        {"tell": [{"trial": 0, "values": {"value": 1}}, {"trial": 1, "values": {"failed": "why"}}]},
                                        {"sing": 1})
        self.assertEqual(len(asked["trials"]), 2)
        self.assertEqual([one["status"] for one in told["told"]], ["finished", "failed"])
        self.assertIn("sing", wrong["error"])

    def test_refuse_what_is_wrong(self):
        self.create()
        self.no("tell", "branin", "0", "--values", '{"value": 1}', naming="no such trial")
        self.ok("ask", "branin")
        self.no("tell", "branin", "0", "--values", '{"accuracy": 1}', naming="value")
        self.no("tell", "branin", "0", "--values", '{"value": "x"}', naming="value: expected a number")
        self.no("tell", "branin", "0", "--values", "{", naming="--values:1")
        self.no("tell", "branin", "zero", "--values", "{}", naming="TRIAL")
        self.no("tell", "branin", "0", naming="--values")
        self.no("ask", "gone", naming="gone")


class Views(Study):
    def test_show_how_a_study_stands(self):
        self.create()
        self.ok("ask", "branin")
        self.ok("tell", "branin", "0", "--values", '{"failed": "no memory"}')
        self.ok("ask", "branin")
        shown = self.ok("show", "branin")
        self.assertEqual([t["status"] for t in shown["trials"]], ["failed", "running"])
        self.assertEqual(shown["trials"][0]["reason"], "no memory")
        self.assertEqual((shown["name"], shown["trials_total"], shown["inference_tunings"]), ("branin", 2, 0))
        text = self.succeed("--store", self.store, "study", "show", "branin").stdout
        self.assertIn("no memory", text)
        self.assertIn("branin", self.succeed("--store", self.store, "study", "list").stdout)

    def test_best_without_a_trial_that_keeps_the_limits_is_status_1(self):
        self.create(ACCURACY)
        self.ok("ask", "limits")
        self.ok("tell", "limits", "0", "--values", '{"accuracy": 0.8}')
        outcome = cli.run("--store", self.store, "study", "best", "limits", "--json")
        self.assertEqual(outcome.status, 1, outcome)
        found = json.loads(outcome.stdout)
        self.assertEqual((found["trial"], found["nearest"]["trial"]), (None, 0))
        self.assertIn("accuracy 0.8, at least 0.9", found["reason"])

    def test_export_and_report(self):
        self.create()
        self.serve("branin", {"ask": 12}, {"tell": [{"trial": i, "values": {"value": i}} for i in range(12)]})
        table, page = self.folder / "t.csv", self.folder / "r.html"
        self.assertEqual(self.ok("export", "branin", "-o", table)["trials"], 12)
        rows = list(csv.DictReader(table.open()))
        self.assertEqual([row["objective: value"] for row in rows], [str(i) for i in range(12)])
        self.assertEqual(self.ok("report", "branin", "-o", page)["trials_seen"], 12)
        self.assertTrue(page.read_text().startswith("<!DOCTYPE html>"))

    def test_remove(self):
        self.create()
        self.assertEqual(self.ok("remove", "branin"), {"removed": "branin"})
        self.assertEqual(self.ok("list"), [])
        self.no("remove", "branin", naming="branin")
        self.no("show", "branin", naming="branin")


class Create(Study):
    def test_refuses_a_second_one_of_the_name(self):
        self.create()
        self.no("create", self.folder / "study.yaml", naming="branin")

    def test_names_the_line_of_what_is_wrong(self):
        file = self.folder / "bad.yaml"
        file.write_text(STUDY.replace("max_epochs: 1,", "max_epochs: 0,"))
        self.no("create", file, naming="bad.yaml:4")


if __name__ == "__main__":
    cli.main()
