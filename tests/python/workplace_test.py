"""import fleetfit: devices, measuring and running."""
import signal
import threading
import time

import numpy as np

import cli
import fleetfit


class Measure(cli.Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "m.onnx"
        fleetfit.write_zoo_network("mobilenet_v2", self.model, width=0.25, image=32)
        self.place = fleetfit.Workplace(f"sqlite:{self.folder}/f.db")

    def test_keeps_what_it_measures_where_the_command_line_finds_it(self):
        self.place.add_device("two", threads=2)
        self.assertEqual([one["name"] for one in self.place.devices()], ["local", "two"])
        records = self.place.measure([self.model], devices=["local", "two"], max_time_s=0.3, ops=True)
        self.assertEqual([one["device"] for one in records], ["local", "two"])
        self.assertTrue((fleetfit.medians(records) > 0).all())
        self.assertGreater(len(records[0]["ops"]), 10)
        devices = self.succeed_json("--store", f"sqlite:{self.folder}/f.db", "device", "list")
        self.assertEqual([one["name"] for one in devices], ["local", "two"])

    def test_measures_designs_once(self):
        space = fleetfit.space("nasbench201")
        designs = space.sample(2)
        first = self.place.measure_designs(space, designs, max_time_s=0.1)
        self.assertEqual([one["design"] for one in first], space.format(designs))
        again = self.place.measure_designs(space, space.format(designs), max_time_s=0.1)
        np.testing.assert_array_equal(fleetfit.medians(first), fleetfit.medians(again))
        self.assertTrue(all(one["known"] for one in again))
        table = self.folder / "t.csv"
        self.succeed("--store", f"sqlite:{self.folder}/f.db", "measure", "export", "--space", "nasbench201", "-o", table)
        texts, columns, numbers = fleetfit.read_table(table, space)
        self.assertEqual(columns, ["local"])
        exported = dict(zip(space.format(texts), numbers[:, 0]))
        for text, median in zip(space.format(designs), fleetfit.medians(first)):
            self.assertAlmostEqual(exported[text], median, 6)

    def test_a_failed_measurement_is_a_record(self):
        self.place.add_device("none", runtime=f"exec:{cli.program()} runtime")
        self.place.remove_device("none")
        with self.assertRaisesRegex(fleetfit.NotFound, "none"):
            self.place.measure([self.model], devices=["none"])
        self.assertTrue(np.isnan(fleetfit.medians([{"latency_ms": None}])).all())

    def test_other_threads_go_on_meanwhile(self):
        ticks, done = [], threading.Event()

        def tick():
            while not done.wait(0.005):
                ticks.append(time.monotonic())

        ticking = threading.Thread(target=tick)
        ticking.start()
        begin = time.monotonic()
        self.place.measure([self.model], max_time_s=0.5)
        end = time.monotonic()
        done.set()
        ticking.join()
        # With the interpreter's lock held, none but the first could fall into the middle of the call.
        self.assertGreater(sum(begin + 0.05 < one < end - 0.05 for one in ticks), 3)

    def test_an_interrupt_stops_it(self):
        def interrupt(number, frame):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.4)
        with self.assertRaises(KeyboardInterrupt):
            self.place.measure([self.model], max_time_s=100, target_ci=0.01)
        self.assertEqual([one["name"] for one in self.place.devices()], ["local"])  # it can be used again

    def test_runs_arrays(self):
        told = fleetfit.inspect(self.model)["inputs"][0]
        image = np.random.default_rng(2).normal(size=told["shape"]).astype(np.float32)
        outputs = self.place.run(self.model, {told["name"]: image})
        self.place.add_device("plain", runtime="reference")
        expected = self.place.run(self.model, {told["name"]: image}, device="plain")
        self.assertEqual(outputs.keys(), expected.keys())
        for name, array in outputs.items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-3, atol=1e-4)
        with self.assertRaisesRegex(fleetfit.InvalidInput, "nosuch"):
            self.place.run(self.model, {"nosuch": image})
        self.assertEqual(self.place.run(self.model).keys(), outputs.keys())


class Predict(cli.Case):
    def test_a_device_is_learnt_and_priced(self):
        place = fleetfit.Workplace("memory:")
        predictor = self.folder / "p.json"
        trained = place.train_predictor("local", predictor, space="nasbench201", samples=8, method="lasso", max_time_s=0.05)
        self.assertEqual(trained["device"] if "device" in trained else "local", "local")
        model = self.folder / "cell.onnx"
        fleetfit.space("nasbench201").describe("421211", onnx=model)
        priced = fleetfit.predict(predictor, [model])[0]
        self.assertTrue(0 < priced["interval90"][0] <= priced["latency_ms"] <= priced["interval90"][1])


if __name__ == "__main__":
    cli.main()
