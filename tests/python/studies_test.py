"""import fleetfit: studies by ask and tell."""
import cli
import fleetfit

STUDY = """\
name: hill
parameters:
  training: {x: {range: [-1, 1]}, y: {range: [-1, 1]}}
objective: {maximize: accuracy}
budget: {kind: epochs, max_epochs: 1, max_trials: 15}
algorithm: {model: tpe}
"""


class Study(cli.Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "hill.yaml"
        self.file.write_text(STUDY, encoding="utf-8")
        self.place = fleetfit.Workplace(f"sqlite:{self.folder}/f.db")
        self.place.create_study(self.file)

    def test_ends_with_the_best_of_what_was_told(self):
        told = {}
        study = self.place.study("hill")
        for trial in study:
            told[trial.number] = 1 - trial.params["x"] ** 2 / 2 - trial.params["y"] ** 2 / 2
            self.assertEqual(study.tell(trial, accuracy=told[trial.number])["trial"], trial.number)
        self.assertTrue(study.done)
        self.assertEqual(len(told), 15)
        best = study.best()
        self.assertEqual(best["trial"], max(told, key=told.get))
        self.assertAlmostEqual(best["accuracy"], max(told.values()))
        self.assertEqual(best, self.succeed_json("--store", f"sqlite:{self.folder}/f.db", "study", "best", "hill"))
        self.assertEqual(len(study.show()["trials"]), 15)
        study.report(self.folder / "r.html")
        self.assertIn("hill", (self.folder / "r.html").read_text(encoding="utf-8"))

    def test_a_trial_may_fail(self):
        study = self.place.study("hill")
        first, second = study.ask(2)
        self.assertEqual(study.tell(first, failed="out of memory")["status"], "failed")
        self.assertEqual(study.tell(second.number, accuracy=0.5)["status"], "finished")
        self.assertEqual(self.place.studies()[0]["name"], "hill")

    def test_what_cannot_be_told_is_named(self):
        study = self.place.study("hill")
        trial, = study.ask()
        with self.assertRaisesRegex(fleetfit.InvalidInput, "finite"):
            study.tell(trial, accuracy=float("nan"))
        with self.assertRaisesRegex(fleetfit.InvalidInput, "accuracy"):
            study.tell(trial, loss=1.0)
        with self.assertRaises(fleetfit.InvalidInput):
            study.tell(99, accuracy=0.5)
        with self.assertRaises(fleetfit.NotFound):
            self.place.study("nosuch")


if __name__ == "__main__":
    cli.main()
