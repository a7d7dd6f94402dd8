"""Numbers that are none, or that nothing real has, in files and in what programs say: refused with their place, or named in the answer."""
import json
import pathlib

import cli

FILES = pathlib.Path(__file__).parent / "formats"


def number(field, value):
    return varint(field << 3) + varint(value)


def varint(value):
    octets = bytearray()
    while value > 127:
        octets.append(value & 127 | 128)
        value >>= 7
    return bytes([*octets, value])


def part(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name, size):
    shape = part(2, part(1, number(1, 1)) + part(1, number(1, size)))
    return part(1, name) + part(2, part(1, number(1, 1) + shape))


def node(operator, inputs, output):
    return part(1, b"".join(part(1, name) for name in inputs) + part(2, output) + part(3, output) + part(4, operator))


def write_onnx(file, size):
    """Outputs: the square roots of the input, the input by nothing, and the input as it is."""
    nodes = node("Sqrt", ["x"], "roots") + node("Sub", ["x", "x"], "nothing") + node("Div", ["x", "nothing"], "quotients") + node("Relu", ["x"], "plain")
    graph = nodes + part(2, "odd") + part(11, tensor("x", size))
    graph += b"".join(part(12, tensor(name, size)) for name in ("roots", "quotients", "plain"))
    file.write_bytes(number(1, 8) + part(7, graph) + part(8, number(2, 13)))


class Predictors(cli.Case):
    def setUp(self):
        super().setUp()
        self.network = self.folder / "net.onnx"
        self.succeed("model", "zoo", "squeezenet1_1", "--width", "0.25", "--image", "32", "--classes", "10", "-o", self.network)
        self.predictor = self.folder / "odd.json"

    def write_weights(self, value):
        document = json.loads((FILES / "predictor.json").read_text())
        for kind in document["kinds"]:
            if "weights" in kind["model"]:
                kind["model"]["weights"] = [value] * len(kind["model"]["weights"])
        self.predictor.write_text(json.dumps(document))

    def test_weights_that_nothing_has_are_refused_where_they_are_read(self):
        for value in (1e308, -1e308):
            self.write_weights(value)
            outcome = self.refuse("predict", "run", self.predictor, self.network, naming="model.weights[0]")
            self.assertIn("odd.json", outcome.stderr)

    def test_a_price_that_is_no_time_names_the_predictor_and_the_kernel(self):
        for value in (1e99, -1e99):
            self.write_weights(value)
            outcome = self.refuse("predict", "run", self.predictor, self.network, naming="odd.json")
            self.assertRegex(outcome.stderr, r"kernel \d+ \(\w+\): the predictor gives it -?\S+ ms, which is no time")

    def test_a_predictor_of_designs_names_the_design(self):
        rows = [f"{i % 5}{i // 5 % 5}{i // 25 % 5}333,{1 + i % 5}" for i in range(60)]
        table = self.folder / "cells.csv"
        table.write_text("\n".join(["ops,phone", *rows]) + "\n")
        self.succeed("--quiet", "predict", "train", "--table", f"{table}#phone", "--space", "nasbench201", "--samples", "50", "-o", self.predictor)
        document = json.loads(self.predictor.read_text())
        document["model"] = {"type": "linear", "intercept": 1e99, "weights": [1e99] * document["features"]}
        self.predictor.write_text(json.dumps(document))
        self.refuse("predict", "run", self.predictor, "--design", "333333", naming="design 333333")


class Tables(cli.Case):
    def test_a_cell_beyond_all_numbers_is_refused_with_its_line(self):
        rows = [f"{i % 5}{i // 5 % 5}{i // 25 % 5}333,{1 + i % 5}" for i in range(60)]
        for value in ("1e308", "inf", "nan(1)"):
            table = self.folder / "cells.csv"
            table.write_text("\n".join(["ops,phone", *rows[:30], f"444444,{value}", *rows[30:]]) + "\n")
            self.refuse("predict", "train", "--table", f"{table}#phone", "--space", "nasbench201", "-o", self.folder / "p.json", naming="cells.csv:32")


class Models(cli.Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "odd.onnx"
        write_onnx(self.model, 64)

    def test_a_run_says_which_outputs_hold_how_many(self):
        report = self.succeed_json("model", "run", self.model, "--random-inputs", "-o", self.folder / "out")
        odd = {output["name"]: output["odd"] for output in report["outputs"]}
        self.assertGreater(odd["roots"]["nan"], 0)
        self.assertLess(odd["roots"]["nan"], 64)
        self.assertEqual(odd["roots"]["infinite"], 0)
        self.assertEqual(odd["quotients"], {"nan": 0, "infinite": 64})
        self.assertEqual(odd["plain"], {"nan": 0, "infinite": 0})
        text = self.succeed("model", "run", self.model, "--random-inputs", "-o", self.folder / "out").stdout
        self.assertIn("Output quotients holds values that are 64 infinite.", text)
        self.assertIn(f"Output roots holds values that are {odd['roots']['nan']} NaN.", text)
        self.assertNotIn("Output plain holds", text)

    def test_a_check_says_so_of_both_sides(self):
        outcome = cli.run("--json", "model", "check", self.model, "--against", "reference")
        outputs = {output["name"]: output for output in self.parse_json(outcome)["outputs"]}
        for side in ("engine_odd", "other_odd"):
            self.assertGreater(outputs["roots"][side]["nan"], 0)
            self.assertEqual(outputs["quotients"][side]["infinite"], 64)
            self.assertEqual(outputs["plain"][side], {"nan": 0, "infinite": 0})
        self.assertIn("of the engine that are 64 infinite", cli.run("model", "check", self.model, "--against", "reference").stdout)


class Studies(cli.Case):
    STUDY = """name: branin
parameters: {training: {x: {range: [-5, 10]}}}
objective: {minimize: value}
budget: {kind: epochs, max_epochs: 1, max_trials: 12}
algorithm: {model: random}
"""

    def test_told_values_beyond_all_numbers_are_refused(self):
        file = self.folder / "study.yaml"
        file.write_text(self.STUDY)
        study = ["--store", f"sqlite:{self.folder}/s.db", "study"]
        self.succeed(*study, "create", file)
        trial = self.succeed_json(*study, "ask", "branin")["trial"]
        for value in ("1e308", "-1e308", "1e999", "NaN"):
            self.refuse(*study, "tell", "branin", trial, "--values", f'{{"value": {value}}}')
        self.succeed(*study, "tell", "branin", trial, "--values", '{"value": 1e30}')


if __name__ == "__main__":
    cli.main()
