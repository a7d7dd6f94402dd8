"""`fleetfit elastify`: a small trained network becomes a bundle; killed work goes on; what does not fit is named."""
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import tempfile
import time

import cli

SIZE = 16
CLASSES = 4


def write_idx(folder, name, count, seed):
    """Noise with a bright square in one of four corners, which is the class."""
    rng = random.Random(seed)
    images, labels = bytearray(), bytearray()
    for _ in range(count):
        label = rng.randrange(CLASSES)
        top, left = (label // 2) * 8 + rng.randrange(3), (label % 2) * 8 + rng.randrange(3)
        image = bytearray(rng.randrange(90) for _ in range(SIZE * SIZE))
        for y in range(top, top + 5):
            image[y * SIZE + left:y * SIZE + left + 5] = bytes(rng.randrange(120, 255) for _ in range(5))
        images += image
        labels.append(label)
    (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, SIZE, SIZE) + images)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)


def write_data(folder, training, test=100):
    folder.mkdir()
    write_idx(folder, "train", training, 1)
    write_idx(folder, "t10k", test, 2)
    return f"idx:{folder}"


class Elastify(cli.Case):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="fleetfit-elastify-")
        cls.addClassCleanup(temporary.cleanup)
        cls.shared = pathlib.Path(temporary.name)
        cls.data = write_data(cls.shared / "data", 700)
        cls.model = cls.shared / "m.onnx"
        trained = cli.run("train", "resnet20", "--width", 0.5, "--data", cls.data, "--epochs", 2, "-o", cls.model, "--json")
        if trained.status != 0:
            raise AssertionError(trained)
        cls.accuracy = json.loads(trained.stdout)["accuracy"]

    def arguments(self, out, *more):
        return ["elastify", self.model, "--data", self.data, "-o", out, "--batch", 32, "--quiet", *more]

    def test_makes_a_bundle(self):
        out = self.folder / "b.ffb"
        result = self.succeed_json(*self.arguments(out))
        self.assertGreater(result["subnets"], 1e4)
        self.assertGreater(result["branches"], result["blocks"])
        self.assertEqual(result["bundle_bytes"], out.stat().st_size)
        self.assertEqual(result["model_bytes"], self.model.stat().st_size)
        self.assertAlmostEqual(result["accuracy"]["original"], self.accuracy, delta=0.011)
        ranges = [r["range"] for r in result["accuracy"]["by_latency"]]
        self.assertEqual(ranges, sorted(ranges))
        self.assertEqual(ranges[-1][1], 1)
        self.assertEqual([e["stage"] for e in result["epochs"]], ["distill", "tune"])
        self.assertFalse(pathlib.Path(f"{out}.training").exists())
        self.succeed("bundle", "verify", out)

    def start(self, out, *more):
        return subprocess.Popen([cli.program(), *map(str, self.arguments(out, "--distill-epochs", 2, *more))],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")

    def wait_for(self, process, path):
        while not path.exists():
            self.assertIsNone(process.poll(), process.stderr)
            time.sleep(0.01)

    def test_killed_work_goes_on_and_gives_the_same(self):
        whole, killed = self.folder / "a.ffb", self.folder / "b.ffb"
        self.succeed(*self.arguments(whole, "--distill-epochs", 2))
        process = self.start(killed)
        self.wait_for(process, pathlib.Path(f"{killed}.training"))  # written after the first epoch
        process.kill()
        process.communicate()
        self.assertFalse(killed.exists())
        self.succeed(*self.arguments(killed, "--distill-epochs", 2, "--resume"))
        models = []
        for bundle in whole, killed:
            code = "-".join(["s1"] * 9)
            self.succeed("bundle", "extract", bundle, "--subnet", code, "-o", self.folder / f"{bundle.stem}.onnx")
            models.append((self.folder / f"{bundle.stem}.onnx").read_bytes())
        self.assertEqual(models[0], models[1])

    def test_interrupted_work_is_written(self):
        out = self.folder / "b.ffb"
        process = self.start(out, "--tune-epochs", 100)
        self.wait_for(process, pathlib.Path(f"{out}.training"))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, said)
        self.assertRegex(said, r"fleetfit: interrupted; [^\n]*--resume[^\n]*\n\Z")
        self.succeed("bundle", "verify", out)

    def test_trains_the_branches_of_a_bundle(self):
        draft, out = self.folder / "draft.ffb", self.folder / "b.ffb"
        self.succeed("bundle", "draft", self.model, "-o", draft)
        arguments = ["elastify", draft, "--data", self.data, "-o", out, "--batch", 32, "--limit", 320, "--quiet"]
        result = self.succeed_json(*arguments, "--tune-epochs", 0)
        self.assertEqual(result["subnets"], self.succeed_json("bundle", "show", draft)["subnets"])
        self.assertEqual(result["model_bytes"], self.model.stat().st_size)
        self.assertEqual([e["stage"] for e in result["epochs"]], ["distill"])
        self.refuse(*arguments, "--merge", 1, naming="--merge")

    def test_a_model_of_two_data_sets_is_elastified_in_two_stages(self):
        data = write_data(self.folder / "few", 300, test=20)
        scenes = f"scenes:{data}"
        segmenter, out, subnet = self.folder / "s.onnx", self.folder / "s.ffb", self.folder / "subnet.onnx"
        trained = self.succeed_json("train", self.model, "--data", scenes, "--limit", 48, "--epochs", 1, "-o", segmenter, "--quiet")
        result = self.succeed_json("elastify", segmenter, "--data", data, "--then", scenes, "-o", out, "--batch", 32, "--limit", 64, "--quiet")
        self.assertAlmostEqual(result["accuracy"]["original"], trained["accuracy"], delta=0.001)
        self.assertTrue(0 < result["accuracy"]["original_mean_iou"] < result["accuracy"]["original"])
        self.assertEqual(result["then"], scenes)
        shown = self.succeed_json("bundle", "show", out)
        self.assertEqual(shown["classes"], ["background", "0", "1", "2", "3"])
        self.assertTrue(all(0 <= s["mean_iou"] <= 1 for s in shown["samples"]))
        self.succeed("bundle", "extract", out, "--subnet", shown["samples"][0]["subnet"], "-o", subnet)
        self.assertEqual(self.succeed_json("model", "inspect", subnet)["outputs"][0]["shape"][1:], [5, 64, 64])
        self.refuse("elastify", segmenter, "--data", data, "-o", out, naming="classes")
        adapted = self.succeed_json("--store", "memory:", "adapt", out, "--data", scenes, "--budget-ms", 1e6, "--samples", 20, "--test-images", 20, "-o",
                                    self.folder / "pool.json", "--quiet")
        self.assertTrue(0 < adapted["best"]["accuracy"] < 1)
        cli.need_onnxruntime(self)
        self.assertTrue(self.succeed_json("model", "check", subnet, "--against", "onnxruntime")["pass"])

    def test_names_what_does_not_fit(self):
        out = self.folder / "b.ffb"
        self.refuse("elastify", self.folder / "none.onnx", "--data", self.data, "-o", out, naming="none.onnx")
        self.refuse(*self.arguments(out, "--limit", 20), naming="20 images")
        self.refuse(*self.arguments(out, "--recipe", "other"), naming="--recipe")
        self.refuse(*self.arguments(self.folder / "none" / "b.ffb"), naming="b.ffb")
        ten = self.folder / "ten.onnx"
        self.succeed("model", "zoo", "resnet20", "-o", ten)
        self.refuse("elastify", ten, "--data", self.data, "-o", out, naming="10 classes")
        self.assertEqual(os.listdir(self.folder), ["ten.onnx"])


if __name__ == "__main__":
    cli.main()
