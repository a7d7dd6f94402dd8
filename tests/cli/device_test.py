"""fleetfit device add, list, show, remove."""
import stat

import cli

DEVICE_KEYS = {"name", "runtime", "runtime_info", "threads", "cores", "precision", "limits", "hardware", "fingerprint"}

# A runtime whose version is in a file beside it.
CHANGING_RUNTIME = """#!/usr/bin/env python3
import json, pathlib, sys
version = pathlib.Path(__file__).with_name("version").read_text()
for line in sys.stdin:
    request = json.loads(line)
    reply = {"id": request["id"], "ok": True, "protocol": 1, "name": "changing", "version": version, "build": "test",
             "times_ms": [1.0] * request.get("runs", 0)}
    print(json.dumps(reply), flush=True)
"""


class DeviceCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.store = ["--store", f"sqlite:{self.folder}/store.db"]

    def add_changing_runtime(self, name):
        program = self.folder / "changing"
        program.write_text(CHANGING_RUNTIME)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (self.folder / "version").write_text("1")
        return self.succeed_json(*self.store, "device", "add", name, "--runtime", f"exec:{program}")


class Add(DeviceCase):
    def test_keeps_what_was_said_and_asks_the_runtime_who_it_is(self):
        added = self.succeed_json(*self.store, "device", "add", "two", "--threads", "2", "--cores", "0", "--precision", "int8")
        self.assertLessEqual(DEVICE_KEYS, set(added))
        self.assertEqual((added["runtime"], added["threads"], added["cores"], added["precision"]), ("auto", 2, [0], "int8"))
        self.assertEqual(added["runtime_info"]["name"], "fleetfit")
        self.assertRegex(added["fingerprint"], r"\A[0-9a-f]{64}\Z")
        self.assertEqual(self.succeed_json(*self.store, "device", "show", "two"), added)

    def test_the_fingerprint_depends_on_all_but_the_name(self):
        def fingerprint(*flags):
            return self.succeed_json(*self.store, "device", "add", *flags)["fingerprint"]

        plain = fingerprint("a")
        self.assertEqual(fingerprint("b"), plain)
        others = [fingerprint("c", "--threads", "2"), fingerprint("d", "--precision", "int8"),
                  fingerprint("e", "--runtime", "reference"), fingerprint("f", "--cores", "0")]
        self.assertEqual(len({plain, *others}), 5)

    def test_an_existing_name_needs_replace(self):
        self.succeed(*self.store, "device", "add", "d")
        self.refuse(*self.store, "device", "add", "d", "--threads", "2", naming="--replace")
        self.assertEqual(self.succeed_json(*self.store, "device", "show", "d")["threads"], 1)
        self.succeed(*self.store, "device", "add", "d", "--threads", "2", "--replace")
        self.assertEqual(self.succeed_json(*self.store, "device", "show", "d")["threads"], 2)

    def test_refuses_what_makes_no_sense_and_names_it(self):
        for naming, *flags in [
            ("local", "local"), ("name", "a b"), ("name", "a/b"), ("model", "model"), ("NAME",),
            ("tflite", "d", "--runtime", "tflite"), ("runtime", "d", "--runtime", "exec:"),
            ("/nosuch/program", "d", "--runtime", "exec:/nosuch/program"),
            ("threads", "d", "--threads", "0"), ("threads", "d", "--threads", "9999"), ("--threads", "d", "--threads", "many"),
            ("cores", "d", "--cores", "4000"), ("cores", "d", "--cores", "a"), ("cores", "d", "--cores", "1-0"),
            ("fp16", "d", "--precision", "fp16"),
            ("cpu_quota_percent", "d", "--cpu-quota", "0"), ("cpu_quota_percent", "d", "--cpu-quota", "100000"),
            ("--cpu-quota", "d", "--cpu-quota", "half"),
            ("memory", "d", "--memory-limit", "lots"), ("memory", "d", "--memory-limit", "1K"), ("memory", "d", "--memory-limit", "9000T"),
            ("frequency_khz", "d", "--frequency-khz", "0"), ("--colour", "d", "--colour"),
        ]:
            with self.subTest(flags=flags):
                self.refuse(*self.store, "device", "add", *flags, naming=naming)
        self.assertEqual([d["name"] for d in self.succeed_json(*self.store, "device", "list")], ["local"])

    def test_a_program_that_is_no_runtime_is_not_added(self):
        outcome = cli.run(*self.store, "device", "add", "d", "--runtime", "exec:/bin/false")
        self.assertEqual(outcome.status, 1, outcome)
        self.assertRegex(outcome.stderr, r"\Afleetfit: device d: [^\n]+\n\Z")

    def test_the_program_itself_is_a_runtime(self):
        program = cli.program()
        added = self.succeed_json(*self.store, "device", "add", "self", "--runtime", f"exec:'{program}' runtime")
        self.assertEqual(added["runtime_info"]["name"], "fleetfit")


class List(DeviceCase):
    def test_local_is_always_there_and_looking_creates_no_store(self):
        devices = self.succeed_json(*self.store, "device", "list")
        self.assertEqual([d["name"] for d in devices], ["local"])
        self.assertEqual((devices[0]["runtime"], devices[0]["threads"], devices[0]["precision"]), ("auto", 1, "fp32"))
        self.assertFalse((self.folder / "store.db").exists())

    def test_shows_devices_by_name_to_people(self):
        self.succeed(*self.store, "device", "add", "zebra")
        self.succeed(*self.store, "device", "add", "ant")
        lines = self.succeed(*self.store, "device", "list").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["name", "local", "ant", "zebra"])


class Remove(DeviceCase):
    def test_forgets_a_device_once(self):
        self.succeed(*self.store, "device", "add", "d")
        self.assertEqual(self.succeed_json(*self.store, "device", "remove", "d"), {"removed": "d"})
        self.refuse(*self.store, "device", "remove", "d", naming="d")
        self.refuse(*self.store, "device", "show", "d", naming="d")

    def test_local_stays(self):
        self.refuse(*self.store, "device", "remove", "local", naming="local")


class Change(DeviceCase):
    def test_a_runtime_of_another_version_is_another_device(self):
        self.add_changing_runtime("d")
        self.assertIsNone(self.succeed_json(*self.store, "device", "show", "d")["change"])
        model = self.folder / "net.onnx"
        self.succeed("model", "zoo", "mobilenet_v2", "--width", "0.25", "--image", "32", "-o", model)
        (self.folder / "version").write_text("2")
        self.assertIn("changing 2", self.succeed_json(*self.store, "device", "show", "d")["change"])
        self.refuse(*self.store, "measure", model, "--device", "d", "--max-time", "1", naming="--replace")

    def test_a_runtime_that_is_gone_is_told(self):
        self.add_changing_runtime("d")
        (self.folder / "changing").unlink()
        self.assertIn("cannot", self.succeed_json(*self.store, "device", "show", "d")["change"])


if __name__ == "__main__":
    cli.main()
