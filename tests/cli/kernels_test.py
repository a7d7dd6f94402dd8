"""fleetfit kernels."""
import collections
import json

import cli


def counts(document):
    return collections.Counter(kernel["kernel"] for kernel in document["kernels"])


class Kernels(cli.Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "net.onnx"

    def zoo(self, *args):
        self.succeed("model", "zoo", *args, "-o", self.model)

    def test_gives_the_contracts_keys_and_each_operator_once(self):
        self.zoo("resnet18")
        document = self.succeed_json("kernels", self.model, "--gpu", "mali-g76")
        self.assertLessEqual({"kernels", "before_fusion", "after_fusion"}, set(document))
        self.assertEqual(document["after_fusion"], len(document["kernels"]))
        operators = {op["name"] for op in self.succeed_json("model", "inspect", self.model)["ops"]}
        named = [op for kernel in document["kernels"] for op in kernel["ops"]]
        self.assertEqual(len(named), len(set(named)))
        self.assertLessEqual(set(named), operators)
        self.assertLess(document["after_fusion"], 0.65 * document["before_fusion"])

    def test_families_of_gpus_choose_other_kernels(self):
        self.zoo("resnet18")
        of = {gpu: counts(self.succeed_json("kernels", self.model, "--gpu", gpu))
              for gpu in ("adreno640", "adreno616", "mali-g76", "powervr-ge8320", "apple", "amd")}
        self.assertEqual([of[gpu]["winograd"] for gpu in ("adreno640", "adreno616")], [0, 0])
        self.assertEqual([of[gpu]["winograd"] for gpu in ("mali-g76", "powervr-ge8320", "apple", "amd")], [7, 7, 7, 7])

    def test_text_has_a_line_for_each_kernel_and_a_sum(self):
        self.zoo("resnet8")
        text = self.succeed("kernels", self.model, "--rules", "plain").stdout
        document = self.succeed_json("kernels", self.model, "--rules", "plain")
        self.assertEqual(len(text.splitlines()), 1 + len(document["kernels"]) + 1)
        self.assertIn(f"{document['before_fusion']} operators become {document['after_fusion']} kernels", text)

    def test_rules_of_the_user_are_followed(self):
        self.zoo("resnet8")
        rules = self.folder / "mine.json"
        rules.write_text(json.dumps({"format": "fleetfit-kernel-rules", "version": 1, "name": "mine",
                                     "select": [{"kind": "winograd", "of": ["conv2d"], "when": {"kernel_height": {"is": 3}}}]}))
        document = self.succeed_json("kernels", self.model, "--rules", rules)
        self.assertGreater(counts(document)["winograd"], 0)
        self.assertEqual(document["before_fusion"], document["after_fusion"])

    def test_what_the_engine_runs_is_what_was_deduced(self):
        self.zoo("mobilenet_v2", "--width", "0.25", "--image", "32")
        store = ["--store", f"sqlite:{self.folder}/store.db"]
        self.succeed(*store, "device", "add", "x", "--runtime", "xnnpack", "--threads", "1")
        document = self.succeed_json(*store, "kernels", self.model, "--verify", "--device", "x")
        self.assertTrue(document["pass"])
        self.assertEqual((document["differences"], document["unmatched"]), ([], []))
        self.assertEqual(document["alike"], document["ran"])

    def test_wrong_rules_fail_with_the_differences(self):
        self.zoo("mobilenet_v2", "--width", "0.25", "--image", "32")
        store = ["--store", f"sqlite:{self.folder}/store.db"]
        self.succeed(*store, "device", "add", "x", "--runtime", "xnnpack", "--threads", "1")
        outcome = cli.run(*store, "kernels", self.model, "--rules", "plain", "--verify", "--device", "x", "--json")
        self.assertEqual(outcome.status, 1, outcome)
        document = self.parse_json(outcome)
        self.assertFalse(document["pass"])
        self.assertIn(["Conv_0"], [difference["deduced"] for difference in document["differences"]])

    def test_what_onnxruntime_runs_is_what_was_deduced(self):
        cli.need_onnxruntime(self)
        self.zoo("resnet20")
        store = ["--store", f"sqlite:{self.folder}/store.db"]
        self.succeed(*store, "device", "add", "ort", "--runtime", "onnxruntime", "--threads", "1")
        outcome = cli.run(*store, "kernels", self.model, "--verify", "--device", "ort", "--json")
        document = self.parse_json(outcome)
        self.assertEqual(document["differences"], [], outcome)

    def test_mistakes_are_named(self):
        self.zoo("resnet8")
        self.refuse("kernels", self.model, naming="--gpu or --rules")
        self.refuse("kernels", self.model, "--gpu", "voodoo2", naming="voodoo2")
        self.refuse("kernels", self.model, "--rules", "tensorrt", naming="tensorrt")
        self.refuse("kernels", self.folder / "no.onnx", "--gpu", "apple", naming="no.onnx")
        self.refuse("kernels", self.model, "--rules", self.folder / "no.json", naming="no.json")
        self.refuse("kernels", self.model, "--verify", naming="--device")
        broken = self.folder / "broken.json"
        broken.write_text('{"format": "fleetfit-kernel-rules", "version": 2, "name": "x"}')
        self.refuse("kernels", self.model, "--rules", broken, naming="its version is 2")


if __name__ == "__main__":
    cli.main()
