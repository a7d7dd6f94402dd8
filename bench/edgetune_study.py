#!/usr/bin/env python3
"""What tuning with inference in mind costs and brings: the claims of EdgeTune, with built-in workloads trained for real.

    bench/edgetune_study.py PROGRAM --fashion SPEC --digits SPEC [--seeds 3] [--trials 24] [--lanes 0,1 2,3] [--seconds 500] [-o study.json]

The same sampler (BOHB) works on each workload in five ways: `tune`, the baseline, looks at accuracy alone, knows nothing of inference, leaves the
number of threads as it is, and its levels differ by epochs; `hierarchical` is the same and tunes inference at the end; the others take the ratio over
time with inference tuned beside the training, by levels of `epochs`, of `data`, or of both (`multi`).
A lane is a set of cores on which one study runs at a time. What is in `-o` already is not done again; after `--seconds` no new study is begun.
Energy is modelled from the CPU time of all processes of a study, the tuning of inference included.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import queue
import sqlite3
import statistics
import subprocess
import time

WORKLOADS = {
    "resnet-fashion-mnist": {"model": {"layers": [18, 34, 50]}, "fixed": {"width": 0.25, "limit": 2000}, "rate": "[1.0e-3, 2.0e-1]", "goal": 0.79},
    "m5-spoken-digits": {"model": {"embedded_dim": [32, 64, 128]}, "fixed": {"limit": 2000}, "rate": "[1.0e-4, 1.0e-1]", "goal": 0.853},
}
WAYS = ("tune", "hierarchical", "epochs", "data", "multi", "goal")
WATTS = 5.0  # of a busy core; only ratios matter here


def study_file(workload, way, seed, data, threads, trials):
    known = WORKLOADS[workload]
    aware = way in ("epochs", "data", "multi", "goal")
    fixed = {**known["fixed"], "data": data}
    model = "\n".join(f"    {name}: {{values: {json.dumps(values)}}}" for name, values in known["model"].items())
    training = "\n".join(f"    {name}: {{values: [{json.dumps(value)}]}}" for name, value in fixed.items())
    choices = [n for n in (1, 2, 4, 8) if n <= threads] if aware else [threads]
    inference = "" if way == "tune" else f"""
inference:
  devices: [edge]
  parameters: {{batch_size: {{values: [1, 2, 4, 8, 16]}}, cores: {{values: {json.dumps([n for n in (1, 2, 4, 8) if n <= threads])}}}}}
  scenario: {{kind: single}}
  objective: latency"""
    budget = {"data": "kind: data, min_epochs: 8, min_data: 0.1", "multi": "kind: multi, min_epochs: 1, max_epochs: 8, min_data: 0.1"}.get(
        "multi" if way == "goal" else way, "kind: epochs, min_epochs: 1, max_epochs: 8")
    mode = ", mode: hierarchical" if way == "hierarchical" else ""
    return f"""name: {workload}-{way}-{seed}
seed: {seed}
workload: {{builtin: {workload}}}
parameters:
  model:
{model}
  training:
    batch_size: {{range: [16, 256], integer: true, log: true}}
    learning_rate: {{range: {known["rate"]}, log: true}}
{training}
  system:
    threads: {{values: {json.dumps(choices)}}}{inference}
objective: {"{kind: ratio, of: time}" if aware else "{maximize: accuracy}"}{f"{chr(10)}constraints: {{accuracy: {known['goal']}}}" if way == "goal" else ""}
budget: {{{budget}, eta: 2, max_trials: {trials}}}
algorithm: {{model: bohb, inference: grid{mode}}}
"""


def levels_of(store):
    with sqlite3.connect(store) as base:
        return base.execute("SELECT ended, started, accuracy, training_s, training_j, epochs, data_fraction FROM levels ORDER BY ended").fetchall()


def one_study(options, folder, workload, way, seed, cores):
    name = f"{workload}-{way}-{seed}"
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    data = {"resnet-fashion-mnist": options.fashion, "m5-spoken-digits": options.digits}[workload]
    threads = len(cores.split(","))
    (place / "study.yaml").write_text(study_file(workload, way, seed, data, threads, options.trials), encoding="utf-8")
    store = ["--store", f"sqlite:{place}/study.db"]
    subprocess.run([options.program, *store, "device", "add", "edge", "--runtime", "auto", "--cores", cores], check=True, stdout=subprocess.DEVNULL)
    command = ["taskset", "-c", cores, options.program, *store, "--quiet", "tune", str(place / "study.yaml"), "--workers", "1"]
    began = time.monotonic()
    done = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
    _, used = os.wait4(done.pid, 0)[1:]
    wall = time.monotonic() - began
    best = subprocess.run([options.program, *store, "study", "best", name, "--json"], capture_output=True, encoding="utf-8", check=False)
    if best.returncode not in (0, 1):
        raise RuntimeError(f"{name}: {best.stderr} {done.stderr.read()}")
    found = json.loads(best.stdout)
    levels = levels_of(place / "study.db")
    if not levels:
        raise RuntimeError(f"{name}: no trial ended well")
    first = min(level[1] for level in levels)
    return {"workload": workload, "way": way, "seed": seed, "wall_s": wall, "cpu_s": used.ru_utime + used.ru_stime,
            "energy_j": WATTS * (used.ru_utime + used.ru_stime), "levels": len(levels), "accuracy": found.get("accuracy") or max(level[2] for level in levels),
            "params": found.get("params"), "inference": found.get("inference", []),
            "history": [{"time_s": (ended - first) / options.ticks, "accuracy": accuracy, "training_s": seconds, "energy_j": joules or 0, "epochs": epochs,
                         "data_fraction": share} for ended, _, accuracy, seconds, joules, epochs, share in levels]}


def reaching(study, target):
    """Time and energy until a level ends with the accuracy; None if none does."""
    energy = 0
    for level in study["history"]:
        energy += level["energy_j"]
        if level["accuracy"] >= target:
            return level["time_s"], energy
    return None


def median(values):
    return statistics.median(values) if values else float("nan")


def target_of(workload, studies):
    """What the baseline finds, less a fiftieth."""
    return 0.98 * median([study["accuracy"] for study in studies if study["workload"] == workload and study["way"] == "tune"])


def table(studies):
    heads = ["workload", "way", "studies", "time s", "energy J", "best accuracy", "reach the target", "time to it s", "energy to it J", "latency ms"]
    print("\n| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for workload, way in [(workload, way) for workload in WORKLOADS for way in WAYS]:
        rows = [study for study in studies if study["workload"] == workload and study["way"] == way]
        if not rows:
            continue
        target = target_of(workload, studies)
        there = [found for study in rows if (found := reaching(study, target))]
        latencies = [study["inference"][0]["latency_ms"] for study in rows if study["inference"]]
        cells = [workload, way, len(rows), f"{median([r['wall_s'] for r in rows]):.0f}", f"{median([r['energy_j'] for r in rows]):.0f}",
                 f"{100 * median([r['accuracy'] for r in rows]):.1f} %", f"{len(there)} (at {100 * target:.1f} %)",
                 f"{median([seconds for seconds, _ in there]):.0f}", f"{median([joules for _, joules in there]):.0f}",
                 f"{median(latencies):.3g}" if latencies else "–"]
        print("| " + " | ".join(map(str, cells)) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--fashion", default="fashion-mnist")
    parser.add_argument("--digits", required=True)
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--lanes", nargs="+", default=["0,1"])
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--ticks", type=float, default=1e3, help="of the store's clock in a second")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("edgetune-study"))
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("edgetune.json"))
    options = parser.parse_args()
    studies = json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() else []
    known = {(study["workload"], study["way"], study["seed"]) for study in studies}
    lanes, began = queue.Queue(), time.monotonic()
    for lane in options.lanes:
        lanes.put(lane)

    def go(workload, way, seed):
        cores = lanes.get()
        try:
            if time.monotonic() - began > options.seconds:
                return None
            return one_study(options, options.work, workload, way, seed, cores)
        finally:
            lanes.put(cores)

    wanted = [(workload, way, seed) for seed in range(1, options.seeds + 1) for workload in options.workloads.split(",") for way in options.ways.split(",")]
    with concurrent.futures.ThreadPoolExecutor(len(options.lanes)) as pool:
        for future in concurrent.futures.as_completed([pool.submit(go, *study) for study in sorted(wanted, key=lambda study: study[2]) if study not in known]):
            if study := future.result():
                studies.append(study)
                options.output.write_text(json.dumps(studies), encoding="utf-8")
                print(study["workload"], study["way"], study["seed"], f"{study['wall_s']:.0f} s {study['accuracy']:.3f}", flush=True)
    table(studies)


if __name__ == "__main__":
    main()
