"""fleetfit model run and model check."""
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
