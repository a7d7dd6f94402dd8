"""fleetfit infer: how to run a network; bad input."""
import cli


class InferCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.store = ["--store", f"sqlite:{self.folder}/s.db"]
        self.model = self.folder / "lenet5.onnx"
        self.succeed("model", "zoo", "lenet5", "-o", self.model)

    def tune(self, *flags):
        outcome = cli.run(*self.store, "infer", "tune", self.model, "--seconds", 0.05, *flags, "--json")
        self.assertIn(outcome.status, (0, 1), outcome)
        return outcome.status, self.parse_json(outcome)


class Tune(InferCase):
    def test_recommends_and_confirms(self):
        status, report = self.tune("--scenario", "server:6@50ms", "--batch", "1,4", "--confirm", 0.3, "--plot", self.folder / "p.html")
        self.assertEqual(status, 0)
        (found,) = report["inference"]
        self.assertEqual(found["settings"], 2)
        self.assertGreater(found["best"]["latency_ms"], 0)
        self.assertEqual(found["best"]["source"], "measured")
        self.assertIn(found["best"]["energy_mj"]["source"], ("measured", "modelled"))
        (real,) = report["confirmed"]
        self.assertEqual(real["real"]["samples"], 36)
        self.assertEqual(real["params"], found["best"]["params"])
        self.assertIn("<svg", (self.folder / "p.html").read_text())

    def test_knows_the_answer_the_second_time(self):
        self.assertFalse(self.tune()[1]["inference"][0]["known"])
        self.assertTrue(self.tune()[1]["inference"][0]["known"])
        self.assertFalse(self.tune("--again")[1]["inference"][0]["known"])

    def test_a_load_that_nothing_bears_is_a_goal_not_met(self):
        status, report = self.tune("--scenario", "multistream:10000000hz", "--batch", "1,2")
        self.assertEqual(status, 1)
        self.assertTrue(report["inference"][0]["best"]["response"]["saturated"])


class BadInput(InferCase):
    def test_names_what_is_wrong(self):
        for flags, name in [(["--scenario", "rush"], "scenario"), (["--batch", "4..1"], "batch_size"), (["--batch", "x"], "batch_size"),
                            (["--cores", "0"], "cores"), (["--precision", "fp16"], "precision"), (["--goal", "glory"], "goal"),
                            (["--device", "nowhere"], "nowhere")]:
            with self.subTest(flags=flags):
                self.refuse(*self.store, "infer", "tune", self.model, *flags, naming=name)
        self.refuse("infer", naming="tune")
        self.refuse("infer", "tune", self.folder / "none.onnx", naming="none.onnx")


cli.main()
