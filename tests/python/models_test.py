"""import fleetfit: models and errors, held against what the command line says."""
import cli
import fleetfit


class Inspect(cli.Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "m.onnx"
        fleetfit.write_zoo_network("mobilenet_v2", self.model, width=0.25, image=32)

    def test_gives_what_the_command_line_gives(self):
        self.assertEqual(fleetfit.inspect(self.model), self.succeed_json("model", "inspect", self.model))
        self.assertEqual(fleetfit.inspect(str(self.model), batch=2), self.succeed_json("model", "inspect", self.model, "--batch", 2))

    def test_kernels_and_conversion_do_as_well(self):
        self.assertEqual(fleetfit.kernels(self.model, "tflite-gpu", "mali-g76"),
                         self.succeed_json("kernels", self.model, "--gpu", "mali-g76"))
        written = fleetfit.convert(self.model, self.folder / "simple.onnx", simplify=True)
        self.assertLess(written["ops_after"], written["ops_before"])
        self.assertFalse([op for op in fleetfit.inspect(self.folder / "simple.onnx")["ops"] if op["type"] == "BatchNormalization"])


class Errors(cli.Case):
    def assert_same_line(self, raised, outcome):
        self.assertEqual(f"fleetfit: {raised.exception}\n", outcome.stderr)

    def test_are_exceptions_with_the_line_of_the_command_line(self):
        missing = self.folder / "missing.onnx"
        with self.assertRaises(fleetfit.NotFound) as raised:
            fleetfit.inspect(missing)
        self.assert_same_line(raised, self.refuse("model", "inspect", missing, naming="missing.onnx"))
        self.assertIsInstance(raised.exception, LookupError)
        self.assertEqual(raised.exception.code, "not_found")

        broken = self.folder / "broken.onnx"
        broken.write_bytes(b"\xff" * 64)
        with self.assertRaises(fleetfit.InvalidInput) as raised:
            fleetfit.inspect(broken)
        self.assert_same_line(raised, self.refuse("model", "inspect", broken, naming="broken.onnx"))
        self.assertIsInstance(raised.exception, ValueError)

    def test_all_are_of_one_kind(self):
        with self.assertRaises(fleetfit.Error):
            fleetfit.space("nosuch")
        with self.assertRaises(fleetfit.Error):
            fleetfit.Workplace("nosuch:store")

    def test_arguments_of_another_type_are_pythons_own_errors(self):
        with self.assertRaises(TypeError):
            fleetfit.inspect(3)


if __name__ == "__main__":
    cli.main()
