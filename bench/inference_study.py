#!/usr/bin/env python3
"""How well inference tuning foretells: networks x scenarios, what is recommended and expected beside a real run of it.

    bench/inference_study.py PROGRAM [--networks resnet20,…] [--seconds 10] [--work FOLDER] [-o study.json]

Rates are chosen by the network's own speed: the server gets 16 samples in the time that 24 single runs take, the multi-stream two thirds of the
samples that single runs could answer: at full load queues grow without end, and no time of response could be foretold. Prints a table in Markdown, and the mean of the errors. Wants a machine that has nothing else to do.
"""
import argparse
import json
import pathlib
import statistics
import subprocess


def run(program, work, *arguments):
    command = [program, "--store", f"sqlite:{work}/inference.db", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def tune(options, model, scenario):
    report = run(options.program, options.work, "infer", "tune", model, "--scenario", scenario, "--batch", "1..32", "--cores", options.cores, "--again",
                 "--confirm", options.seconds)
    return report["inference"][0], report["confirmed"][0]


def row_of(network, scenario, found, real):
    expected, seen = real["expected"], real["real"]
    setting = real["params"]
    numbers = [f"{expected[key]:.3g} / {seen[key]:.3g}" for key in ("mean_ms", "p95_ms", "p99_ms", "throughput", "energy_mj")]
    return [network, scenario, f"{setting['batch_size']} x {setting['cores']}", f"{found['priced']} of {found['settings']}", *numbers,
            f"{100 * real['error']:+.1f} %"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--networks", default="resnet20,resnet56,mobilenet_v2_small")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--cores", default="1,2", help="to choose from")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("inference-study"))
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    rows, reports = [], []
    for network in options.networks.split(","):
        model = options.work / f"{network}.onnx"
        run(options.program, options.work, "model", "zoo", network, "-o", model)
        single_ms = None
        for kind in ("single", "offline", "server", "multistream"):
            scenario = {"server": f"server:16@{24 * (single_ms or 1):.3g}ms", "multistream": f"multistream:{667 / (single_ms or 1):.3g}hz"}.get(kind, kind)
            found, real = tune(options, model, scenario)
            single_ms = single_ms or real["expected"]["mean_ms"]
            rows.append(row_of(network, scenario, found, real))
            reports.append({"network": network, "inference": found, "confirmed": real})
            print("  ".join(rows[-1]), flush=True)
    heads = ["network", "scenario", "batch x cores", "priced", "mean ms", "p95 ms", "p99 ms", "samples/s", "mJ a sample", "error"]
    print("\n| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    errors = [abs(report["confirmed"]["error"]) for report in reports]
    print(f"\nmean of the errors {100 * statistics.mean(errors):.1f} %, largest {100 * max(errors):.1f} %")
    if options.output:
        options.output.write_text(json.dumps(reports, indent=1))


if __name__ == "__main__":
    main()
