"""fleetfit space list, show, sample; designs of every space are measured."""
import csv

import cli

SPACES = {"fbnet", "icpe", "mobilenetv2", "mobilenetv3", "nasbench201", "ofa-mbv3", "proxylessnas"}


class List(cli.Case):
    def test_has_every_space_with_its_exact_size(self):
        spaces = {space["name"]: space for space in self.succeed_json("space", "list")}
        self.assertEqual(set(spaces), SPACES)
        self.assertEqual(spaces["nasbench201"]["designs"], str(5**6))
        self.assertEqual(spaces["fbnet"]["designs"], str(9**22))
        self.assertEqual(spaces["ofa-mbv3"]["designs"], str(25 * (9**2 + 9**3 + 9**4) ** 5))
        self.assertEqual(spaces["mobilenetv2"]["designs"], str(9 * (9**2 + 9**3 + 9**4) ** 5))
        self.assertEqual(spaces["ofa-mbv3"]["columns"], ["ks", "e", "d", "r"])

    def test_is_a_table_for_people(self):
        text = self.succeed("space", "list").stdout
        for name in SPACES:
            self.assertIn(name, text)
        self.assertIn("15625", text)


class Show(cli.Case):
    def test_lists_genes_and_encodings(self):
        space = self.succeed_json("space", "show", "nasbench201")
        self.assertEqual(len(space["genes"]), 6)
        self.assertEqual({e["name"]: e["features"] for e in space["encodings"]},
                         {"genes": 30, "one-hot": 31, "live": 31, "counts": 10})
        self.assertIn("edge 0>1", self.succeed("space", "show", "nasbench201").stdout)

    def test_tells_the_size_of_a_design_as_published(self):
        # NATS-Bench: 15.6474 million multiply-accumulates, 0.129306 million parameters.
        design = self.succeed_json("space", "show", "nasbench201", "421211")
        self.assertEqual(design["cells"], {"ops": "421211"})
        self.assertAlmostEqual(design["flops"] / 2e6, 15.6474, 4)
        self.assertEqual(design["params"], 129306)
        self.assertEqual(design["counts"]["conv1x1"], 2)

    def test_tells_dead_paths(self):
        self.assertIn("live       1 of 6", self.succeed("space", "show", "nasbench201", "310200").stdout)

    def test_takes_the_cells_of_a_table(self):
        cells = "75557757573753735353,64466343363336346436,22223,204"
        design = self.succeed_json("space", "show", "ofa-mbv3", cells)
        self.assertEqual(design["input"], [1, 3, 204, 204])
        self.assertEqual(self.succeed_json("space", "show", "ofa-mbv3", design["design"]), design)

    def test_writes_the_network(self):
        model = self.folder / "cell.onnx"
        design = self.succeed_json("space", "show", "nasbench201", "421211", "-o", model)
        self.assertEqual(self.succeed_json("model", "inspect", model)["totals"]["flops"], design["flops"])

    def test_refuses_what_is_no_design(self):
        self.refuse("space", "show", "nosuch", naming="nosuch")
        self.refuse("space", "show", "nasbench201", "42121", naming="edge 2>3")
        self.refuse("space", "show", "nasbench201", "4212111", naming="'1' stands behind the end")
        self.refuse("space", "show", "ofa-mbv3", "75,64,22223,204", naming="block 3 kernel")
        self.refuse("space", "show", "nasbench201", "-o", self.folder / "x.onnx", naming="DESIGN")
        self.refuse("space", naming="list, show or sample")


class Sample(cli.Case):
    def test_draws_the_same_designs_for_the_same_seed(self):
        ten = self.succeed("space", "sample", "fbnet", "--samples", 10).stdout.split()
        self.assertEqual(len(set(ten)), 10)
        self.assertEqual(self.succeed("space", "sample", "fbnet", "--samples", 3, "--first", 2).stdout.split(), ten[2:5])
        self.assertNotEqual(self.succeed("space", "sample", "fbnet", "--samples", 10, "--seed", 2).stdout.split(), ten)

    def test_writes_a_table_of_key_columns(self):
        table = self.folder / "designs.csv"
        designs = self.succeed_json("space", "sample", "ofa-mbv3", "--samples", 4, "-o", table)
        with open(table) as file:
            self.assertEqual(list(csv.DictReader(file)), [design["cells"] for design in designs])

    def test_refuses_more_than_there_are(self):
        self.refuse("space", "sample", "nasbench201", "--samples", 15626, naming="15625")
        self.refuse("space", "sample", "nasbench201", naming="--samples")


class Measure(cli.Case):
    def test_measures_designs_of_nasbench201(self):
        store = f"sqlite:{self.folder / 's.db'}"
        table = self.folder / "t.csv"
        outcome = cli.run("measure", "--space", "nasbench201", "--samples", 2, "--max-time", "0.2", "--store", store, "--json")
        self.assertIn(outcome.status, (0, 1), outcome)  # a busy machine does not settle
        self.succeed("measure", "export", "--space", "nasbench201", "-o", table, "--store", store)
        with open(table) as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["ops"] for row in rows},
                         set(self.succeed("space", "sample", "nasbench201", "--samples", 2).stdout.split()))


if __name__ == "__main__":
    cli.main()
