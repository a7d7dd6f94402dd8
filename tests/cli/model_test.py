"""fleetfit model inspect, convert, zoo."""
import os

import cli

INSPECT_KEYS = {"format", "inputs", "outputs", "ops", "totals", "unsupported"}
OPERATOR_KEYS = {"name", "type", "flops", "params", "input_bytes", "output_bytes", "weight_bytes"}
TOTALS_KEYS = {"flops", "params", "weight_bytes", "peak_activation_bytes"}
TENSOR_KEYS = {"name", "shape", "dtype"}


class Inspect(cli.Case):
    def test_refuses_a_file_that_is_not_there(self):
        self.refuse("model", "inspect", self.folder / "missing.onnx", naming="missing.onnx")

    def test_refuses_a_folder(self):
        folder = self.folder / "folder.onnx"
        folder.mkdir()
        self.refuse("model", "inspect", folder, naming="folder.onnx")

    def test_refuses_an_empty_file_of_any_format(self):
        for name in ("empty.onnx", "empty.tflite", "empty.param", "empty"):
            with self.subTest(name=name):
                (self.folder / name).touch()
                self.refuse("model", "inspect", self.folder / name, naming=name)

    def test_refuses_bytes_that_are_no_model(self):
        for name in ("noise.onnx", "noise.tflite", "noise.param"):
            with self.subTest(name=name):
                (self.folder / name).write_bytes(bytes(range(256)) * 64)
                self.refuse("model", "inspect", self.folder / name, naming=name)

    def test_keeps_one_line_when_the_name_has_two(self):
        self.refuse("model", "inspect", self.folder / "two\nlines.onnx", naming="lines.onnx")

    def test_refuses_with_json_too(self):
        self.refuse("model", "inspect", self.folder / "missing.onnx", "--json", naming="missing.onnx")

    def test_refuses_files_of_gigabytes_at_once(self):
        # Sparse files: they take no room on the disk.
        beginnings = {"huge.onnx": b"\x08\x08\x3a\xf0\xff\xff\xff\x0b", "huge.tflite": b"\x1c\0\0\0TFL3",
                      "huge.param": b"7767517\n3 3\nInput a 0 1 x\n"}
        for name, beginning in beginnings.items():
            with self.subTest(name=name):
                file = self.folder / name
                file.write_bytes(beginning)
                os.truncate(file, 3 << 30)
                self.refuse("model", "inspect", file, naming=name)
                self.assertLess(self.peak_memory("model", "inspect", file), 1 << 30)

    def test_takes_less_memory_than_twice_the_file(self):
        model = self.folder / "resnet50.onnx"
        self.succeed("model", "zoo", "resnet50", "-o", model)
        idle = self.peak_memory("--version")
        self.assertLess(self.peak_memory("model", "inspect", model) - idle, 2 * model.stat().st_size)

    def test_open_dimensions_are_assumed_or_given(self):
        model = self.folder / "resnet20.onnx"
        self.succeed("model", "zoo", "resnet20", "-o", model)
        assumed = self.succeed_json("model", "inspect", model)
        self.assertEqual(assumed["inputs"][0]["symbols"], ["N", None, None, None])
        self.assertEqual(assumed["assumed"], [{"input": "input", "dimension": "N", "extent": 1}])
        given = self.succeed_json("model", "inspect", model, "--dim", "N=4")
        self.assertEqual(given["inputs"][0]["shape"], [4, 3, 32, 32])
        self.assertEqual(given["totals"]["flops"], 4 * assumed["totals"]["flops"])
        for bad in ("N", "N=", "=4", "N=0", "N=many"):
            self.refuse("model", "inspect", model, "--dim", bad, naming=bad)


class Zoo(cli.Case):
    def test_lists_networks_with_family_and_size(self):
        networks = self.succeed_json("model", "zoo")
        self.assertGreaterEqual(len(networks), 100)
        self.assertGreaterEqual(len({network["family"] for network in networks}), 25)
        self.assertEqual(len({network["name"] for network in networks}), len(networks))
        for network in networks:
            with self.subTest(network=network):
                self.assertGreater(network["flops"], 0)
                self.assertGreater(network["params"], 0)

    def test_lists_them_for_people_too(self):
        self.assertIn("mobilenet_v2", self.succeed("model", "zoo").stdout)

    def test_refuses_a_network_that_it_does_not_know(self):
        target = self.folder / "out.onnx"
        self.refuse("model", "zoo", "NOSUCH", "-o", target, naming="NOSUCH")
        self.assertFalse(target.exists())
        self.refuse("model", "zoo", "NOSUCH", naming="NOSUCH")

    def test_refuses_a_target_in_a_folder_that_is_not_there(self):
        self.refuse("model", "zoo", "resnet20", "-o", self.folder / "missing" / "out.onnx", naming="out.onnx")


class RoundTrip(cli.Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "resnet20.onnx"
        self.succeed_json("model", "zoo", "resnet20", "-o", self.model)

    def test_inspect_reads_what_the_zoo_wrote(self):
        report = self.succeed_json("model", "inspect", self.model)

        self.assertLessEqual(INSPECT_KEYS, set(report))
        self.assertEqual(report["format"], "onnx")
        self.assertEqual(report["unsupported"], [])
        for tensor in report["inputs"] + report["outputs"]:
            self.assertLessEqual(TENSOR_KEYS, set(tensor))
        for operator in report["ops"]:
            self.assertLessEqual(OPERATOR_KEYS, set(operator))
        self.assertLessEqual(TOTALS_KEYS, set(report["totals"]))
        for key in ("flops", "params", "weight_bytes"):
            self.assertEqual(report["totals"][key], sum(operator[key] for operator in report["ops"]), key)

    def test_resnet20_has_its_published_size(self):
        # He and others 2015: 0.27 M parameters; 40.8 M multiply-accumulates on 32 x 32 images.
        totals = self.succeed_json("model", "inspect", self.model)["totals"]
        self.assertAlmostEqual(totals["params"] / 1e6, 0.27, delta=0.005)
        self.assertAlmostEqual(totals["flops"] / 2e6, 40.8, delta=0.8)

    def test_the_list_and_the_file_agree(self):
        listed = {network["name"]: network for network in self.succeed_json("model", "zoo")}["resnet20"]
        totals = self.succeed_json("model", "inspect", self.model)["totals"]
        self.assertEqual((listed["flops"], listed["params"]), (totals["flops"], totals["params"]))

    def test_json_may_stand_before_or_after_the_verb(self):
        before = self.parse_json(self.succeed("--json", "model", "inspect", self.model))
        after = self.parse_json(self.succeed("model", "inspect", self.model, "--json"))
        self.assertEqual(before, after)

    def test_converting_keeps_the_operators(self):
        converted = self.folder / "converted.onnx"
        self.succeed_json("model", "convert", self.model, converted)
        types = lambda model: [operator["type"] for operator in self.succeed_json("model", "inspect", model)["ops"]]
        self.assertEqual(types(converted), types(self.model))

    def test_simplifying_folds_batch_norms_unless_told_otherwise(self):
        def types(*flags):
            converted = self.folder / "converted.onnx"
            self.succeed("model", "convert", self.model, converted, *flags)
            return {operator["type"] for operator in self.succeed_json("model", "inspect", converted)["ops"]}

        self.assertIn("BatchNormalization", types())
        self.assertNotIn("BatchNormalization", types("--simplify"))
        self.assertIn("BatchNormalization", types("--simplify", "--without", "fold_batch_norm"))
        self.refuse("model", "convert", self.model, self.folder / "x.onnx", "--simplify", "--without", "nosuch", naming="nosuch")

    def test_the_same_seed_writes_the_same_file(self):
        again = self.folder / "again.onnx"
        self.succeed("model", "zoo", "resnet20", "-o", again)
        self.assertEqual(again.read_bytes(), self.model.read_bytes())

    def test_refuses_a_truncated_file(self):
        os.truncate(self.model, self.model.stat().st_size // 2)
        self.refuse("model", "inspect", self.model, naming="resnet20.onnx")


if __name__ == "__main__":
    cli.main()
