"""fleetfit train: networks learn real images, go on after kill -9, and bad input is refused."""
import json
import pathlib
import signal
import subprocess
import time
import unittest

import cli

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")


def idx(values, *shape):
    return bytes([0, 0, 8, len(shape)]) + b"".join(n.to_bytes(4, "big") for n in shape) + bytes(values)


def write_bars(folder, count=400):
    """Digits of a kind: a bright row or a bright column, at one of two places, is the class."""
    folder.mkdir()
    for prefix, images in ("train", count), ("t10k", 100):
        pixels, labels = bytearray(), bytearray()
        for i in range(images):
            label = i % 4
            at = 3 if label % 2 == 0 else 11
            for y in range(16):
                for x in range(16):
                    on = (y if label < 2 else x) in (at, at + 1)
                    pixels.append(200 + (7 * i + x) % 50 if on else (13 * i + 5 * x + 3 * y) % 60)
            labels.append(label)
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(idx(pixels, images, 16, 16))
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(idx(labels, images))
    return f"idx:{folder}"


class Train(cli.Case):
    def setUp(self):
        super().setUp()
        self.data = write_bars(self.folder / "bars")
        self.model = self.folder / "m.onnx"

    def begin(self, *args):
        command = [cli.program(), "train", *map(str, args), "--json"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    def wait_for(self, file, process):
        while not file.exists():
            self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
            time.sleep(0.01)

    def test_learns_and_writes_a_network_with_an_open_batch(self):
        trained = self.succeed_json("train", "resnet8", "--data", self.data, "--epochs", 4, "--width", 0.5, "-o", self.model)
        self.assertGreater(trained["accuracy"], 0.9)
        self.assertEqual((trained["epochs"], trained["images"]), (4, 360))
        self.assertFalse(pathlib.Path(f"{self.model}.training").exists())
        inspected = self.succeed_json("model", "inspect", self.model)
        self.assertIn("BatchNormalization", {op["type"] for op in inspected["ops"]})
        batch = self.succeed_json("model", "inspect", self.model, "--dim", "N=5")
        self.assertEqual(batch["inputs"][0]["shape"], [5, 1, 16, 16])

    def test_goes_on_from_a_file(self):
        for epochs, model in (2, "resnet8"), (1, self.model):
            before = self.succeed_json("train", model, "--data", self.data, "--epochs", epochs, "-o", self.model, "--seed", 3)
        self.assertGreater(before["accuracy"], 0.8)

    def test_goes_on_after_kill_9(self):
        options = ["lenet5", "--data", self.data, "--image", 28, "--epochs", 8, "-o", self.model]
        whole = self.succeed_json("train", *options)
        process = self.begin(*options)
        self.wait_for(pathlib.Path(f"{self.model}.training"), process)
        process.kill()
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGKILL)
        resumed = self.succeed_json("train", *options, "--resume")
        self.assertGreaterEqual(resumed["resumed_at"], 1)
        self.assertEqual([resumed[k] for k in ("epochs", "accuracy")], [whole[k] for k in ("epochs", "accuracy")])

    def test_keeps_the_best_when_interrupted(self):
        process = self.begin("lenet5", "--data", self.data, "--image", 28, "--epochs", 5000, "-o", self.model)
        self.wait_for(pathlib.Path(f"{self.model}.training"), process)
        process.send_signal(signal.SIGINT)
        told, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, said)
        self.assertRegex(said, r"\Afleetfit: interrupted; [^\n]*--resume[^\n]*\n\Z")
        self.assertTrue(json.loads(told)["interrupted"])
        self.succeed("model", "inspect", self.model)

    @unittest.skipUnless(FASHION.exists(), "Fashion-MNIST is not installed")
    def test_learns_fashion(self):
        trained = self.succeed_json("train", "lenet5", "--data", "fashion-mnist", "--limit", 600, "--epochs", 4, "-o", self.model)
        self.assertGreater(trained["accuracy"], 0.3)

    def test_refuses_bad_input(self):
        def refuse(*args, naming):
            self.refuse("train", *args, "-o", self.model, naming=naming)

        refuse("resnet21", "--data", self.data, naming="resnet20")
        refuse("resnet50", "--data", self.data, naming="--image")
        refuse("resnet8", "--data", f"idx:{self.folder / 'none'}", naming="none")
        refuse("resnet8", naming="--data")
        self.refuse("train", "resnet8", "--data", self.data, "-o", self.folder / "none" / "m.onnx", naming="m.onnx")
        self.succeed("model", "zoo", "resnet8", "-o", self.folder / "ten.onnx")
        refuse(self.folder / "ten.onnx", "--data", self.data, naming="4 classes")
        pathlib.Path(f"{self.model}.training").write_text("something else")
        refuse("resnet8", "--data", self.data, "--resume", naming="m.onnx.training")

    def test_says_that_there_is_no_cuda(self):
        outcome = cli.run("train", "resnet8", "--data", self.data, "--epochs", 1, "--compute", "cuda", "-o", self.model)
        if outcome.status == 0:
            self.skipTest("there is a CUDA device")
        self.assertEqual(outcome.status, 2, outcome)
        self.assertRegex(outcome.stderr, r"\Afleetfit: [^\n]*CUDA[^\n]*\n\Z")

    def test_help_shows_an_example(self):
        self.assertIn("fleetfit train resnet20", self.succeed("train", "--help").stdout)


if __name__ == "__main__":
    cli.main()
