"""fleetfit fit on a table of made-up devices: NAS-Bench-201 with latencies that are sums over edges."""
import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import time

import cli

DESIGNS = ["".join(digits) for digits in itertools.product("01234", repeat=6)][::5]
WORTH = {"0": 0, "1": 2, "2": 6, "3": 9, "4": 3}
DEVICES = {  # ms of each operator; the last is unlike the others
    "slow": {"0": 0.4, "1": 0.8, "2": 4.0, "3": 16.0, "4": 2.0},
    "quick": {"0": 0.1, "1": 0.2, "2": 1.1, "3": 3.8, "4": 0.5},
    "phone": {"0": 0.2, "1": 0.2, "2": 2.0, "3": 9.0, "4": 1.4},
    "board": {"0": 0.5, "1": 0.6, "2": 3.0, "3": 7.0, "4": 2.5},
}


def latency(device, design):
    noise = random.Random(device + design).gauss(1, 0.01)
    return round((2 + sum(DEVICES[device][digit] * (1 + 0.1 * place) for place, digit in enumerate(design))) * noise, 6)


def accuracy(design):
    return round(60 + sum(WORTH[digit] * (1 + 0.05 * place) for place, digit in enumerate(design)) / 2, 6)


LATENCY = {name: {design: latency(name, design) for design in DESIGNS} for name in DEVICES}


def budget(device, share):
    low, high = min(LATENCY[device].values()), max(LATENCY[device].values())
    return round(low + share * (high - low), 4)


def optimum(device, limit):
    return max(accuracy(design) for design in DESIGNS if LATENCY[device][design] <= limit)


class FitCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.write_table("latency.csv", list(DEVICES))
        (self.folder / "accuracy.csv").write_text("ops,top1\n" + "".join(f"{d},{accuracy(d)}\n" for d in DESIGNS))
        self.limits = {name: budget(name, 0.4) for name in DEVICES}

    def write_table(self, name, devices, keep=lambda device, design: True):
        rows = (",".join([d, *(str(LATENCY[n][d]) if keep(n, d) else "" for n in devices)]) for d in DESIGNS)
        (self.folder / name).write_text("\n".join(["ops," + ",".join(devices), *rows]) + "\n")

    def fleet(self, devices, head=""):
        text = "space: nasbench201\naccuracy: table:accuracy.csv#top1\nlatency: latency.csv\n" + head + "devices:\n"
        file = self.folder / "fleet.yaml"
        file.write_text(text + "".join(f"  - {line}\n" for line in devices))
        return file

    def whole_fleet(self, head=""):
        return self.fleet([f"{{name: {name}, budget: {{latency: {limit} ms}}}}" for name, limit in self.limits.items()], head)

    def arguments(self, fleet):
        return ["fit", fleet, "-o", self.folder / "out", "--store", f"sqlite:{self.folder}/store.db"]


class Fit(FitCase):
    def test_gives_every_device_a_measured_design_near_the_optimum(self):
        result = self.succeed_json(*self.arguments(self.whole_fleet()))
        self.assertTrue(result["all_fitted"])
        for device in result["devices"]:
            name, best = device["device"], device["best"]
            self.assertEqual(best["latency_ms"]["measured"], LATENCY[name][best["design"]])
            self.assertLessEqual(best["latency_ms"]["measured"], self.limits[name])
            self.assertEqual(best["accuracy"], accuracy(best["design"]))
            self.assertLess(optimum(name, self.limits[name]) - best["accuracy"], 0.8, name)
            self.assertLessEqual(device["measurements"], 14)
            self.assertLessEqual(device["confirmations"], 4)
        self.assertEqual(json.loads((self.folder / "out/fit.json").read_text()), result)

    def test_keeps_budgets_of_energy_beside_those_of_latency(self):
        # Waiting for memory costs time and hardly energy, so that the two limits cut off different designs.
        energy = {name: {d: round(0.2 * LATENCY[name][d] + 3 * d.count("2") + 9 * d.count("3"), 4) for d in DESIGNS} for name in DEVICES}
        rows = (",".join([d, *(str(energy[n][d]) for n in DEVICES)]) for d in DESIGNS)
        (self.folder / "energy.csv").write_text("\n".join(["ops," + ",".join(DEVICES), *rows]) + "\n")
        limits = {name: round(min(energy[name].values()) + 0.3 * (max(energy[name].values()) - min(energy[name].values())), 4) for name in DEVICES}
        lines = [f"{{name: {name}, budget: {{latency: {budget(name, 0.6)} ms, energy: {limits[name]} mJ}}}}" for name in DEVICES]
        result = self.succeed_json(*self.arguments(self.fleet(lines, "energy: energy.csv\n")))
        self.assertTrue(result["all_fitted"])
        for device in result["devices"]:
            name, best = device["device"], device["best"]
            self.assertEqual(best["energy_mj"]["measured"], energy[name][best["design"]])
            self.assertLessEqual(best["energy_mj"]["measured"], limits[name])
            self.assertLessEqual(best["latency_ms"]["measured"], budget(name, 0.6))
            possible = max(accuracy(d) for d in DESIGNS if energy[name][d] <= limits[name] and LATENCY[name][d] <= budget(name, 0.6))
            self.assertLess(possible - best["accuracy"], 1.5, name)

    def test_looks_at_no_cell_but_those_that_it_tells(self):
        first = self.succeed_json(*self.arguments(self.whole_fleet()))
        seen = {d["device"]: {p["design"] for p in d["measured"]} for d in first["devices"]}
        self.write_table("latency.csv", list(DEVICES))
        only = self.folder / "only.csv"
        rows = "".join(f"{d},{LATENCY['board'][d]}\n" for d in DESIGNS if d in seen["board"])
        only.write_text("ops,board\n" + rows)
        line = f"{{name: board, measure: \"table:only.csv#board\", references: [slow, quick, phone], budget: {{latency: {self.limits['board']}}}}}"
        second = self.succeed_json("fit", self.fleet([line]), "-o", self.folder / "two", "--store", "memory:")
        before = next(d for d in first["devices"] if d["device"] == "board")
        self.assertEqual(second["devices"][0]["best"]["design"], before["best"]["design"])

    def test_report_shows_what_the_store_holds(self):
        arguments = self.arguments(self.whole_fleet())
        before = self.succeed_json(*arguments)["devices"][0]
        with sqlite3.connect(self.folder / "store.db") as store:
            store.execute("UPDATE measurements SET median_ms = 0.123456 WHERE device = ? AND design = ?",
                          (before["device"], before["best"]["design"]))
        store.close()
        after = self.succeed_json(*arguments)["devices"][0]
        self.assertEqual(after["best"]["latency_ms"]["measured"], 0.123456)
        self.assertIn("0.1235 ms", (self.folder / "out/report.html").read_text())

    def test_page_fetches_nothing(self):
        self.succeed(*self.arguments(self.whole_fleet()))
        page = (self.folder / "out/report.html").read_text()
        self.assertNotRegex(page, r"https?://|src=|@import|<script")
        for name in DEVICES:
            self.assertIn(name, page)

    def test_second_run_measures_nothing_and_tells_the_same(self):
        arguments = self.arguments(self.whole_fleet())
        first = self.succeed_json(*arguments)
        with sqlite3.connect(self.folder / "store.db") as store:
            rows = store.execute("SELECT count(*) FROM measurements").fetchone()
        second = self.succeed_json(*arguments)
        with sqlite3.connect(self.folder / "store.db") as store:
            self.assertEqual(store.execute("SELECT count(*) FROM measurements").fetchone(), rows)
        store.close()
        self.assertEqual(second["devices"], first["devices"])

    def test_killed_at_any_moment_it_goes_on_to_the_same_result(self):
        fleet = self.whole_fleet()
        whole = self.succeed_json("fit", fleet, "-o", self.folder / "whole", "--store", "memory:")
        command = [cli.program(), *map(str, self.arguments(fleet)), "--json", "--threads", "1"]
        for delay_s in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay_s)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        self.assertEqual(self.succeed_json(*self.arguments(fleet))["devices"], whole["devices"])

    def test_threads_do_not_change_the_result(self):
        fleet = self.whole_fleet()
        results = [self.succeed_json("fit", fleet, "-o", self.folder / "out", "--store", "memory:", "--threads", n)["devices"]
                   for n in (1, 3)]
        self.assertEqual(results[0], results[1])

    def test_budget_that_cannot_be_kept_tells_the_nearest(self):
        outcome = cli.run("fit", self.fleet(["{name: slow, budget: {latency: 0.5}}",
                                             f"{{name: phone, budget: {{latency: {self.limits['phone']}}}}}"]),
                          "-o", self.folder / "out", "--store", "memory:", "--json")
        self.assertEqual(outcome.status, 1, outcome)
        slow, phone = self.parse_json(outcome)["devices"]
        self.assertEqual((slow["state"], slow["best"]), ("unreachable", None))
        self.assertLess(slow["nearest"]["latency_ms"]["measured"], 1.3 * min(LATENCY["slow"].values()))
        self.assertEqual(phone["state"], "fitted")
        self.assertTrue((self.folder / "out/report.html").exists())

    def test_share_of_an_original_is_a_budget(self):
        line = "{name: phone, budget: {latency: 50%}}"
        device = self.succeed_json(*self.arguments(self.fleet([line], "original: '333330'\n")))["devices"][0]
        self.assertAlmostEqual(device["budgets"][0]["limit"], LATENCY["phone"]["333330"] / 2)
        self.assertLessEqual(device["best"]["latency_ms"]["measured"], LATENCY["phone"]["333330"] / 2)

    def test_device_known_by_a_table_alone_is_predicted(self):
        line = f"{{name: theirs, latency: \"table:latency.csv#phone\", budget: {{latency: {self.limits['phone']}}}}}"
        device = self.succeed_json(*self.arguments(self.fleet([line])))["devices"][0]
        self.assertEqual(device["state"], "predicted")
        self.assertEqual(device["best"]["accuracy"], optimum("phone", self.limits["phone"]))

    def test_new_device_is_told_what_to_measure_until_it_is_fitted(self):
        known = set()
        line = f"{{name: board, budget: {{latency: {self.limits['board']}}}}}"
        for _ in range(10):
            self.write_table("latency.csv", list(DEVICES), lambda device, design: device != "board" or design in known)
            outcome = cli.run(*self.arguments(self.fleet([line])), "--json")
            device = self.parse_json(outcome)["devices"][0]
            if device["state"] == "fitted":
                break
            self.assertEqual((device["state"], outcome.status), ("waiting", 1), outcome)
            known.update(device["measure_next"])
        self.assertEqual(device["state"], "fitted")
        self.assertLess(optimum("board", self.limits["board"]) - device["best"]["accuracy"], 0.8)
        self.assertLess(len(known), 20)

    def test_fewest_models_serve_the_whole_fleet(self):
        result = self.succeed_json(*self.arguments(self.whole_fleet()), "--share-within", 6)
        own = {d["device"]: d["best"]["accuracy"] for d in result["devices"]}
        served = []
        for model in result["shared"]["models"]:
            for name in model["devices"]:
                self.assertLessEqual(LATENCY[name][model["design"]], self.limits[name])
                self.assertGreaterEqual(accuracy(model["design"]), own[name] - 6)
                served.append(name)
        self.assertCountEqual(served, DEVICES)
        self.assertLess(len(result["shared"]["models"]), len(DEVICES))


class BadFleets(FitCase):
    def test_bad_files_name_line_and_key(self):
        good = "space: nasbench201\naccuracy: table:accuracy.csv#top1\nlatency: latency.csv\ndevices:\n  - {name: slow, budget: {latency: 9}}\n"
        for old, new, line, key in [
                ("latency: 9", "latency: nine", 5, "devices[0].budget.latency: expected an amount"),
                ("latency: 9", "latency: -9", 5, "devices[0].budget.latency"),
                ("latency: 9", "latency: 9 mJ", 5, "devices[0].budget.latency"),
                ("latency: 9", "latency: 50%", 5, "a share needs original"),
                ("latency: 9", "latncy: 9", 5, "devices[0].budget.latncy: there is no such key"),
                ("latency: 9", "latency: 9, of: p90", 5, "a table has one number"),
                ("latency: 9", "latency: 9, energy: 3", 5, "budget.energy: there is no table"),
                ("{name: slow,", "{name: a/b,", 5, "devices[0].name"),
                ("{name: slow,", "{name: slow, threads: 2,", 5, "devices[0].threads: there is no such key"),
                ("space: nasbench201", "spcae: nasbench201", 1, "spcae: there is no such key"),
                ("devices:", "devices: []\nother:", 5, "other"),
                ("latency: latency.csv", "latency: latency.csv\nconfirmations: 0", 4, "confirmations"),
                ("  - {name: slow", "  - {name: slow, budget: {latency: 1}}\n  - {name: slow", 6, "slow occurs twice")]:
            file = self.folder / "bad.yaml"
            file.write_text(good.replace(old, new, 1))
            outcome = self.refuse("fit", file, "-o", self.folder / "out", "--store", "memory:", naming=f"bad.yaml:{line}: ")
            self.assertIn(key, outcome.stderr)

    def test_names_that_do_not_exist_are_refused(self):
        self.refuse(*self.arguments(self.fleet(["{name: nobody, budget: {latency: 9}}"])), naming="nobody")
        self.refuse(*self.arguments(self.fleet(["{name: slow, references: [nobody], budget: {latency: 9}}"])), naming="nobody")
        self.refuse("fit", self.folder / "none.yaml", "-o", self.folder / "out", naming="none.yaml")


if __name__ == "__main__":
    cli.main()
