"""Spaces with precision and pruning behind their name: all verbs that take a space take them."""
import itertools
import random

import cli

SPACE = "nasbench201+precision+pruning"
MS = {"0": 0, "1": 0.2, "2": 1.0, "3": 4.0, "4": 0.5}


def latency_ms(design, slowness=1.0):
    ops, precision, widths = design.split("+")
    width = sum(int(share[1:]) for share in widths.split("-")) / 300
    return round(slowness * (1 + sum(MS[op] for op in ops) * width**2 * (0.4 if precision == "int8" else 1)), 4)


def accuracy(design):
    ops, precision, widths = design.split("+")
    width = sum(int(share[1:]) for share in widths.split("-")) / 300
    return round(60 + sum(MS[op] for op in ops) + 10 * width - (1 if precision == "int8" else 0), 4)


class PolicySpace(cli.Case):
    def setUp(self):
        super().setUp()
        shares = ["-".join(each) for each in itertools.product(("w100", "w75", "w50"), repeat=3)]
        chance = random.Random(1)
        self.designs = sorted({"+".join(("".join(chance.choices("01234", k=6)), chance.choice(("fp32", "int8")), chance.choice(shares)))
                               for _ in range(600)})
        self.table = self.folder / "table.csv"
        rows = [f"{d},{latency_ms(d)},{latency_ms(d, 3)},{accuracy(d)}\n" for d in self.designs]
        self.table.write_text("".join(["ops,phone,board,accuracy\n", *rows]))

    def test_a_design_is_shown(self):
        whole = self.succeed_json("space", "show", SPACE, "421233+fp32+w100-w100-w100")
        self.assertEqual(whole["flops"], self.succeed_json("space", "show", "nasbench201", "421233")["flops"])
        half = self.succeed_json("space", "show", SPACE, "421233+int8+w50-w50-w50")
        self.assertLess(half["flops"], 0.3 * whole["flops"])
        self.assertEqual(self.succeed_json("space", "show", SPACE)["designs"], str(5**6 * 54))

    def test_samples_are_designs(self):
        for design in self.succeed_json("space", "sample", "fbnet+pruning", "--samples", 3):
            self.assertRegex(design["design"], r"^[0-8]{22}\+w\d+-w\d+-w\d+$")

    def test_designs_are_measured_in_their_precision(self):
        outcome = cli.run("measure", "--space", SPACE, "--samples", 2, "--max-time", 0.2, "--store", f"sqlite:{self.folder}/s.db", "--json")
        self.assertIn(outcome.status, (0, 1), outcome)  # a busy machine does not settle
        measured = self.parse_json(outcome)
        self.assertEqual(len(measured), 2)
        for result in measured:
            self.assertIn(result["status"], ("ok", "unstable"), result)

    def test_searching_finds_the_best_of_a_table(self):
        result = self.succeed_json("search", "--space", SPACE, "--latency", f"table:{self.table}#phone", "--accuracy",
                                   f"table:{self.table}#accuracy", "--budget-ms", 6, "--strategy", "exhaustive")
        self.assertEqual(result["best"]["accuracy"], max(accuracy(d) for d in self.designs if latency_ms(d) <= 6))

    def test_predictors_learn_from_a_table(self):
        model = self.folder / "p.json"
        self.succeed_json("predict", "train", "--table", f"{self.table}#phone", "--space", SPACE, "--method", "trees", "-o", model)
        design = self.designs[7]
        found = self.succeed_json("predict", "run", model, "--design", design)[0]
        self.assertAlmostEqual(found["latency_ms"] / latency_ms(design), 1, delta=0.5)

    def test_devices_are_compared(self):
        result = self.succeed_json("transfer", "srcc", self.table, "--space", SPACE, "--devices", "phone,board")
        self.assertAlmostEqual(result["srcc"][0][1], 1, 6)

    def test_policies_that_there_are_not_are_refused(self):
        self.refuse("space", "show", "fbnet+speed", naming="there is no space 'fbnet+speed'")
        self.refuse("space", "show", SPACE, "421233+int4+w100-w100-w100", naming="precision")


cli.main()
