"""fleetfit workload list, show."""
import cli

NAMES = ["resnet-fashion-mnist", "resnet-cifar10", "m5-spoken-digits", "rnn-ag-news", "yolo-scenes"]


class List(cli.Case):
    def test_has_every_workload(self):
        self.assertEqual([w["name"] for w in self.succeed_json("workload", "list")], NAMES)
        text = self.succeed("workload", "list").stdout
        for name in NAMES:
            self.assertIn(name, text)


class Show(cli.Case):
    def test_tells_parameters_data_and_a_study(self):
        for name in NAMES:
            shown = self.succeed_json("workload", "show", name)
            parameters = {p["name"]: p for p in shown["parameters"]}
            self.assertGreater(parameters["batch_size"]["default"], 0)
            self.assertIn(f"builtin: {name}", shown["study"])
            text = self.succeed("workload", "show", name).stdout
            self.assertIn("learning_rate", text)
            self.assertIn(shown["study"], text)
        self.assertEqual(parameters["dropout"]["group"], "model")

    def test_refuses_what_is_no_workload(self):
        self.refuse("workload", "show", "resnet-mars", naming="resnet-mars")
        self.refuse("workload", "show", naming="NAME")
        self.refuse("workload", naming="subcommand")


if __name__ == "__main__":
    cli.main()
