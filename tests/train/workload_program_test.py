"""fleetfit-train workload: the trial protocol as a program speaks it, and how it ends."""
import json
import os
import signal
import struct
import subprocess

import cli


class Workload(cli.Case):
    def setUp(self):
        super().setUp()
        self.trial = self.folder / "trial"

    def bars(self, count=400):
        """Images of 8 x 8 in MNIST's format: the left or the right half is bright."""
        for name in "train", "t10k":
            images = b"".join((bytes([200] * 4 + [0] * 4) if i % 2 else bytes([0] * 4 + [200] * 4)) * 8 for i in range(count))
            (self.folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">HBBIII", 0, 8, 3, count, 8, 8) + images)
            (self.folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, count) + bytes(i % 2 for i in range(count)))
        return f"idx:{self.folder}"

    def start(self, name, document):
        environment = dict(os.environ, GOMP_SPINCOUNT="1000")
        environment.pop("FLEETFIT_TRIAL", None)
        if document is not None:
            environment["FLEETFIT_TRIAL"] = document if isinstance(document, str) else json.dumps(document)
        return subprocess.Popen([cli.program(), "workload", name], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    def document(self, epochs, **more):
        params = {"data": self.bars(), "width": 0.05, "threads": 1, "batch_size": 20}
        return {"study": "s", "trial": 1, "params": params, "budget": {"epochs": epochs, "data_fraction": 1.0}, "checkpoint_dir": str(self.trial), **more}

    def lines(self, process):
        out, said = process.communicate(timeout=120)
        self.assertEqual((process.returncode, said), (0, ""))
        return [json.loads(line) for line in out.splitlines()]

    def fails(self, name, document, naming):
        process = self.start(name, document)
        out, said = process.communicate(timeout=120)
        self.assertEqual((process.returncode, out), (2, ""))
        self.assertRegex(said, r"\Afleetfit: [^\n]*\n\Z")
        self.assertIn(naming, said)

    def test_speaks_the_protocol(self):
        model, *epochs, last = self.lines(self.start("resnet-fashion-mnist", self.document(2)))
        self.assertEqual(model, {"model": str(self.trial / "untrained.onnx")})
        self.assertEqual([e["epoch"] for e in epochs], [1, 2])
        self.assertEqual(last["result"]["accuracy"], epochs[-1]["accuracy"])
        self.assertEqual(last["result"]["model"], str(self.trial / "model.onnx"))
        self.assertTrue((self.trial / "model.onnx").exists())

    def test_goes_on_after_sigterm(self):
        process = self.start("resnet-fashion-mnist", self.document(100_000))
        while '"epoch"' not in process.stdout.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("interrupted", said)
        *_, last = self.lines(self.start("resnet-fashion-mnist", self.document(1, resume=True)))
        self.assertGreaterEqual(last["result"]["resumed_at"], 1)

    def test_refuses_bad_input(self):
        self.fails("resnet-mars", self.document(1), "resnet-mars")
        self.fails("yolo-scenes", None, "FLEETFIT_TRIAL")
        self.fails("yolo-scenes", "{", "FLEETFIT_TRIAL")
        self.fails("resnet-fashion-mnist", {"budget": {"epochs": 1}, "checkpoint_dir": str(self.trial), "params": {"layer": 3}}, "layer")
        self.fails("resnet-fashion-mnist", {"budget": {"epochs": 1}, "checkpoint_dir": str(self.trial), "params": {"data": "idx:/none"}}, "/none")


if __name__ == "__main__":
    cli.main()
