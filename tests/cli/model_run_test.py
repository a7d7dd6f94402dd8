"""fleetfit model run, model check and model convert --precision int8."""
import struct

import cli


def write_npy(file, shape, values=None, descr="<f4"):
    """A file of numpy, written without numpy."""
    count = 1
    for extent in shape:
        count *= extent
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({''.join(f'{extent}, ' for extent in shape)}), }}"
    header = header.ljust(117) + "\n"
    values = [0.0] * count if values is None else values
    content = struct.pack(f"<{count}{'f' if descr == '<f4' else 'd'}", *values)
    file.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content)


def read_npy(file):
    content = file.read_bytes()
    begin = 10 + struct.unpack("<H", content[8:10])[0]
    return struct.unpack(f"<{(len(content) - begin) // 4}f", content[begin:])


def largest_difference(one, other):
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


class RunCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.store = ["--store", f"sqlite:{self.folder}/store.db"]
        self.model = self.folder / "net.onnx"
        self.succeed("model", "zoo", "mobilenet_v2", "--width", "0.25", "--image", "32", "--classes", "10", "-o", self.model)


class Run(RunCase):
    def test_writes_a_file_for_each_output(self):
        report = self.succeed_json("model", "run", self.model, "--random-inputs", "-o", self.folder / "out")
        self.assertEqual([(o["name"], o["dtype"], o["shape"]) for o in report["outputs"]], [("output", "float32", [1, 10])])
        self.assertEqual(len(read_npy(self.folder / "out" / "output.npy")), 10)

    def test_the_same_inputs_give_the_same_on_the_interpreter(self):
        write_npy(self.folder / "x.npy", (1, 3, 32, 32), [(i % 17) / 17 for i in range(3072)])
        self.succeed(*self.store, "device", "add", "plain", "--runtime", "reference")
        for device in ("local", "plain"):
            self.succeed(*self.store, "model", "run", self.model, "--input", f"input={self.folder}/x.npy", "--device", device,
                         "-o", self.folder / device)
        ours, plain = (read_npy(self.folder / device / "output.npy") for device in ("local", "plain"))
        largest = max(map(abs, plain))
        self.assertGreater(largest, 0)
        self.assertLess(largest_difference(ours, plain), 1e-4 * largest)

    def test_the_seed_decides_random_inputs(self):
        outputs = []
        for number, seed in enumerate((1, 1, 2)):
            self.succeed("--seed", seed, "model", "run", self.model, "--random-inputs", "-o", self.folder / str(number))
            outputs.append(read_npy(self.folder / str(number) / "output.npy"))
        # Other kernels may be the fastest in another run: they round differently.
        self.assertLess(largest_difference(outputs[0], outputs[1]), 1e-4 * max(map(abs, outputs[0])))
        self.assertGreater(largest_difference(outputs[0], outputs[2]), 1e-3 * max(map(abs, outputs[0])))

    def test_a_given_batch_is_run(self):
        report = self.succeed_json("model", "run", self.model, "--random-inputs", "--batch", "3", "-o", self.folder / "out")
        self.assertEqual(report["outputs"][0]["shape"], [3, 10])

    def test_refuses_inputs_that_do_not_fit_and_names_them(self):
        write_npy(self.folder / "small.npy", (1, 3, 16, 16))
        write_npy(self.folder / "double.npy", (1, 3, 32, 32), descr="<f8")
        write_npy(self.folder / "good.npy", (1, 3, 32, 32))
        (self.folder / "noise.npy").write_bytes(b"noise")
        for naming, *flags in [
            ("input is missing",), ("1x3x16x16", "--input", f"input={self.folder}/small.npy"),
            ("float64", "--input", f"input={self.folder}/double.npy"), ("noise.npy", "--input", f"input={self.folder}/noise.npy"),
            ("missing.npy", "--input", f"input={self.folder}/missing.npy"), ("NAME=FILE", "--input", "input"),
            ("no input image", "--input", f"image={self.folder}/good.npy"),
            ("twice", "--input", f"input={self.folder}/good.npy", "--input", f"input={self.folder}/good.npy"),
            ("nosuch", "--random-inputs", "--device", "nosuch"),
        ]:
            with self.subTest(flags=flags):
                self.refuse(*self.store, "model", "run", self.model, *flags, "-o", self.folder / "out", naming=naming)
        self.refuse("model", "run", self.model, "--random-inputs", naming="--output")
        self.assertFalse((self.folder / "out").exists())
        self.assertFalse((self.folder / "store.db").exists())


class Check(RunCase):
    def test_the_engine_agrees_with_the_interpreter(self):
        report = self.succeed_json("model", "check", self.model, "--against", "reference")
        self.assertTrue(report["pass"])
        (output,) = report["outputs"]
        self.assertEqual(output["name"], "output")
        self.assertLess(output["max_rel_diff"], 1e-4)

    def test_the_engine_agrees_with_onnxruntime(self):
        cli.need_onnxruntime(self)
        report = self.succeed_json("model", "check", self.model, "--against", "onnxruntime")
        self.assertTrue(report["pass"], report)

    def test_a_runtime_that_computes_something_else_does_not_pass(self):
        liar = self.folder / "liar.py"
        liar.write_text(LIAR)
        for value in ("0.0", "nan"):
            with self.subTest(value=value):
                outcome = cli.run("model", "check", self.model, "--against", f"exec:python3 {liar} {value}", "--json")
                self.assertEqual(outcome.status, 1, outcome)
                self.assertFalse(self.parse_json(outcome)["pass"])

    def test_refuses_what_is_no_runtime(self):
        self.refuse("--store", "memory:", "model", "check", self.model, "--against", "nosuch", naming="nosuch")
        self.refuse("model", "check", self.model, naming="--against")
        self.refuse("model", "check", self.model, "--against", "reference", "--precision", "fp16", naming="fp16")
        self.refuse("model", "check", self.folder / "missing.onnx", "--against", "reference", naming="missing.onnx")


class Quantize(RunCase):
    def test_writes_a_model_of_bytes_that_computes_about_the_same(self):
        model, target = self.folder / "resnet.onnx", self.folder / "resnet8.onnx"
        self.succeed("model", "zoo", "resnet20", "-o", model)
        report = self.succeed_json("model", "convert", model, target, "--precision", "int8", "--calibrate", "random", "--samples", "5")
        self.assertEqual((report["precision"], report["calibration_samples"], report["accuracy"]), ("int8", 5, None))
        self.assertLess(target.stat().st_size, 0.5 * model.stat().st_size)
        for file in (model, target):
            self.succeed("model", "run", file, "--random-inputs", "-o", self.folder / file.stem)
        whole, quantized = (read_npy(self.folder / file.stem / "output.npy") for file in (model, target))
        self.assertLess(largest_difference(whole, quantized), 0.1 * max(map(abs, whole)))

    def test_tells_the_accuracy_on_a_data_set_of_its_classes(self):
        data = self.folder / "data"
        for number, color in enumerate(((255, 0, 0), (0, 0, 255))):
            for image in range(20):
                write_bmp(data / f"class{number}" / f"{image}.bmp", tuple(max(0, c - image) for c in color))
        model = self.folder / "two.onnx"
        self.succeed("model", "zoo", "mobilenet_v2", "--width", "0.25", "--image", "32", "--classes", "2", "-o", model)
        report = self.succeed_json("model", "convert", model, self.folder / "two8.onnx", "--precision", "int8",
                                   "--calibrate", f"images:{data}", "--samples", "10")
        accuracy = report["accuracy"]
        self.assertEqual(accuracy["images"], 8)  # a fifth of 40 is for testing
        self.assertAlmostEqual(accuracy["drop"], accuracy["float"] - accuracy["int8"])
        self.assertIn(8 * accuracy["float"], range(9))
        # Ten scores cannot tell two classes.
        other = self.succeed_json("model", "convert", self.model, self.folder / "ten8.onnx", "--precision", "int8",
                                  "--calibrate", f"images:{data}", "--samples", "10")
        self.assertIsNone(other["accuracy"])
        self.assertIn("2 classes", other["why_no_accuracy"])

    def test_refuses_what_it_cannot_quantize(self):
        target = self.folder / "out.onnx"
        for naming, *flags in [
            ("--calibrate", "--precision", "int8"), ("int4", "--precision", "int4"), ("--precision", "--calibrate", "random"),
            ("nosuch", "--precision", "int8", "--calibrate", "nosuch"),
            ("missing", "--precision", "int8", "--calibrate", f"images:{self.folder}/missing"),
            ("entropy", "--precision", "int8", "--calibrate", "random", "--method", "entropy"),
            ("--samples", "--precision", "int8", "--calibrate", "random", "--samples", "0"),
        ]:
            with self.subTest(flags=flags):
                self.refuse("model", "convert", self.model, target, *flags, naming=naming)
        self.assertFalse(target.exists())


def write_bmp(file, color, side=8):
    """A picture of one colour, 24 bits a pixel."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pixels = bytes(reversed(color)) * side * side
    header = struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54)
    file.write_bytes(header + struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, 0, len(pixels), 0, 0, 0, 0) + pixels)


# A runtime whose only output holds the value that it is told, ten times.
LIAR = r'''
import json, pathlib, struct, sys
value = float(sys.argv[1])
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 10), }".ljust(117) + "\n"
content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<10f", *[value] * 10)
for line in sys.stdin:
    request = json.loads(line)
    reply = {"id": request["id"], "ok": True, "protocol": 1, "name": "liar", "version": "1", "build": ""}
    if request["op"] == "compute":
        (pathlib.Path(request["folder"]) / "out.npy").write_bytes(content)
        reply["outputs"] = [{"name": "output", "file": "out.npy"}]
    print(json.dumps(reply), flush=True)
'''


if __name__ == "__main__":
    cli.main()
