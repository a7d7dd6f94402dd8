"""fleetfit bundle show, verify, sign, extract, join, draft."""
import shutil
import struct
import subprocess

import cli

# Two blocks with a choice (o, s1, m1 and o, s1, s2) and a fixed classifier; 2 x 4 x 4 images, three classes.
BUNDLE = cli.SOURCE / "fuzz/corpus/bundle/conv.ffb"


class BundleCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.bundle = self.folder / "conv.ffb"
        shutil.copy(BUNDLE, self.bundle)

    def extract(self, name, *flags, bundle=None):
        target = self.folder / name
        report = self.succeed_json("bundle", "extract", bundle or self.bundle, *flags, "-o", target)
        self.assertEqual(report["file"], str(target))
        return target


class Show(BundleCase):
    def test_tells_models_blocks_and_branches(self):
        report = self.succeed_json("bundle", "show", self.bundle)
        self.assertEqual(report["bytes"], self.bundle.stat().st_size)
        self.assertEqual(report["classes"], ["shirt", "bag", "boot"])
        self.assertEqual(report["original"], "o-o")
        (model,) = report["models"]
        self.assertEqual([block["name"] for block in model["blocks"]], ["first", "second", "classifier"])
        self.assertEqual([[b["branch"] for b in block["branches"]] for block in model["blocks"]],
                         [["o", "s1", "m1"], ["o", "s1", "s2"], ["o"]])
        self.assertEqual(model["blocks"][0]["output"], [1, 2, 4, 4])
        # Two convolutions of 3 x 3 between 2 and 4 channels on 4 x 4 images.
        self.assertEqual(model["blocks"][0]["branches"][0]["macs"], 2 * 9 * 2 * 4 * 16)
        self.assertEqual(report["samples"][1], {"subnet": "m1", "accuracy": 0.75, "mac_share": 0.5})

    def test_counts_subnets(self):
        # Two branches of the first block with three of the second, and the merged one.
        report = self.succeed_json("bundle", "show", self.bundle)
        self.assertEqual((report["subnets"], report["subnets_exact"]), (7, "7"))

    def test_speaks_to_people_too(self):
        text = self.succeed("bundle", "show", self.bundle).stdout
        for word in ("first", "shrunk to 0.25", "for 2 blocks", "75.00 %", "fashion-mnist"):
            self.assertIn(word, text)

    def test_refuses_what_is_no_bundle(self):
        self.refuse("bundle", "show", self.folder / "missing.ffb", naming="missing.ffb")
        noise = self.folder / "noise.ffb"
        noise.write_bytes(bytes(range(256)) * 64)
        self.refuse("bundle", "show", noise, naming="noise.ffb: it is no bundle")
        self.refuse("bundle", naming="show, verify, sign")


class Verify(BundleCase):
    def test_takes_what_is_whole(self):
        report = self.succeed_json("bundle", "verify", self.bundle)
        self.assertEqual(report["signature"], "none")
        self.assertEqual(len(report["sections"]), 7)

    def test_refuses_damage_anywhere(self):
        whole = self.bundle.read_bytes()
        for at in (0, 20, 300, len(whole) // 2, len(whole) - 1):
            with self.subTest(at=at):
                damaged = bytearray(whole)
                damaged[at] ^= 1
                self.bundle.write_bytes(damaged)
                for verb in ("verify", "show"):
                    self.refuse("bundle", verb, self.bundle, naming="conv.ffb: it is")

    def test_refuses_a_newer_version_by_its_number(self):
        newer = bytearray(self.bundle.read_bytes())
        newer[8] = 3
        self.bundle.write_bytes(newer)
        self.refuse("bundle", "verify", self.bundle, naming="version 3")


class Sign(BundleCase):
    def setUp(self):
        super().setUp()
        if not shutil.which("openssl"):
            self.skipTest("the program openssl is not there to make keys")
        self.keys = [self.make_key(name) for name in ("a", "b")]

    def make_key(self, name):
        private, public = self.folder / f"{name}.pem", self.folder / f"{name}.pub"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True, capture_output=True)
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
        return private, public

    def test_a_required_key_has_to_be_the_signers(self):
        (private, public), (_, other) = self.keys
        self.refuse("bundle", "verify", self.bundle, "--key", public, naming="not signed")
        before = self.bundle.read_bytes()
        self.succeed("bundle", "sign", self.bundle, "--key", private)
        self.assertEqual(self.bundle.read_bytes()[128:], before[128:])
        self.assertEqual(self.succeed_json("bundle", "verify", self.bundle, "--key", public)["signature"], "valid")
        self.assertEqual(self.succeed_json("bundle", "verify", self.bundle)["signature"], "not checked")
        self.refuse("bundle", "verify", self.bundle, "--key", other, naming="not by the key")
        self.refuse("bundle", "verify", self.bundle, "--key", private, naming="no public Ed25519 key")
        self.refuse("bundle", "sign", self.bundle, "--key", public, naming="no private Ed25519 key")

    def test_openssl_itself_takes_the_signature(self):
        private, public = self.keys[0]
        self.succeed("bundle", "sign", self.bundle, "--key", private)
        raw = self.bundle.read_bytes()
        (length,) = struct.unpack("<Q", raw[16:24])
        (self.folder / "manifest").write_bytes(raw[128:128 + length])
        (self.folder / "signature").write_bytes(raw[56:120])
        done = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", self.folder / "manifest",
                               "-sigfile", self.folder / "signature"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done)

    def test_a_passphrase_is_not_asked_for(self):
        private = self.folder / "secret.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:word", "-out", private],
                       check=True, capture_output=True)
        self.refuse("bundle", "sign", self.bundle, "--key", private, naming="without a passphrase")


class Extract(BundleCase):
    def test_writes_any_subnet_as_onnx(self):
        original = self.succeed_json("model", "inspect", self.extract("original.onnx"))
        small = self.succeed_json("model", "inspect", self.extract("small.onnx", "--subnet", "s1-s2"))
        merged = self.succeed_json("model", "inspect", self.extract("merged.onnx", "--subnet", "m1"))
        convolution = 9 * 2 * 16
        head = 2 * 3
        for report, inner in ((original, 4 + 4), (small, 2 + 1), (merged, 4)):
            self.assertEqual(report["totals"]["flops"], 2 * (2 * convolution * inner + head))
            self.assertEqual(report["inputs"][0]["symbols"][0], "N")
            self.assertEqual(report["outputs"][0]["shape"], [1, 3])
        self.assertIn("BatchNormalization", {operator["type"] for operator in original["ops"]})

    def test_onnxruntime_computes_what_the_engine_does(self):
        cli.need_onnxruntime(self)
        for code in ("o-o", "s1-s2", "m1"):
            report = self.succeed_json("model", "check", self.extract(f"{code}.onnx", "--subnet", code), "--against", "onnxruntime")
            self.assertTrue(report["pass"], report)

    def test_refuses_a_subnet_that_there_is_not(self):
        target = self.folder / "out.onnx"
        self.refuse("bundle", "extract", self.bundle, "--subnet", "o-s9", "-o", target, naming="subnet 'o-s9': block 1")
        self.refuse("bundle", "extract", self.bundle, naming="--output")
        self.assertFalse(target.exists())


class Join(BundleCase):
    def test_puts_models_into_one_bundle_that_holds_equal_blocks_once(self):
        joined = self.folder / "joined.ffb"
        report = self.succeed_json("bundle", "join", self.bundle, self.bundle, "-o", joined)
        self.assertEqual((report["models"], report["blocks"], report["branches"], report["subnets"]), (2, 6, 14, 14))
        self.assertEqual(len(self.succeed_json("bundle", "verify", joined)["sections"]), 7)
        shown = self.succeed_json("bundle", "show", joined)
        self.assertEqual([sample["subnet"] for sample in shown["samples"]], ["conv:o-o", "conv:m1", "conv#2:o-o", "conv#2:m1"])
        alone = self.extract("alone.onnx", "--subnet", "s1-o")
        again = self.extract("again.onnx", "--subnet", "conv#2:s1-o", bundle=joined)
        self.assertEqual(alone.read_bytes(), again.read_bytes())

    def test_refuses_models_that_tell_other_classes_apart(self):
        other = cli.SOURCE / "fuzz/corpus/bundle/scaling.ffb"
        self.refuse("bundle", "join", self.bundle, other, "-o", self.folder / "joined.ffb", naming="classes")


class Draft(cli.Case):
    def setUp(self):
        super().setUp()
        self.model, self.bundle = self.folder / "resnet20.onnx", self.folder / "resnet20.ffb"
        self.succeed("model", "zoo", "resnet20", "-o", self.model)

    def test_makes_a_model_elastic_without_training(self):
        report = self.succeed_json("bundle", "draft", self.model, "-o", self.bundle)
        self.assertGreaterEqual(report["blocks"], 9)
        self.assertGreater(report["subnets"], 1e4)
        self.assertLess(report["bundle_bytes"], 5 * self.model.stat().st_size)
        self.succeed("bundle", "verify", self.bundle)

    def test_the_original_is_a_subnet(self):
        self.succeed("bundle", "draft", self.model, "-o", self.bundle)
        extracted = self.folder / "original.onnx"
        self.succeed("bundle", "extract", self.bundle, "-o", extracted)
        outputs = []
        for model in (self.model, extracted):
            folder = self.folder / f"{model.stem}-outputs"
            self.succeed("model", "run", model, "--random-inputs", "-o", folder)
            (written,) = folder.glob("*.npy")
            outputs.append(struct.unpack("<10f", written.read_bytes()[-40:]))
        for original, subnet in zip(*outputs):  # kernels are chosen by how fast they are, in each run anew: their last bits may differ
            self.assertAlmostEqual(original, subnet, places=4)

    def test_pruning_alone_has_no_merged_branches(self):
        self.succeed("bundle", "draft", self.model, "-o", self.bundle, "--merge", "0", "--shrink", ".5")
        (model,) = self.succeed_json("bundle", "show", self.bundle)["models"]
        codes = {branch["branch"] for block in model["blocks"] for branch in block["branches"]}
        self.assertEqual(codes, {"o", "s1"})

    def test_refuses_what_cannot_be_made_elastic(self):
        self.refuse("bundle", "draft", self.folder / "missing.onnx", "-o", self.bundle, naming="missing.onnx")
        self.refuse("bundle", "draft", self.model, "-o", self.bundle, "--shrink", "many", naming="--shrink")


if __name__ == "__main__":
    cli.main()
