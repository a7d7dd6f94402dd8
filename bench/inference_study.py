#!/usr/bin/env python3
"""How well inference tuning predicts: networks x scenarios, what is recommended and expected beside a real run of it.

    bench/inference_study.py PROGRAM [--networks resnet20,…] [--seconds 10] [--rounds 3] [--work FOLDER] [-o study.json]

Rates are chosen by the network's own speed, the same in all rounds: the server gets 16 samples in the time that 24 single runs take, the multi-stream two
thirds of the samples that single runs could answer: at full load queues grow without end, and no time of response could be predicted. A machine that is
faster at one time than at another shows as errors that differ from round to round; what is wrong with the prediction itself is in their median. Errors are told of
responses, which wait for each other, and of the runs alone. Prints a table in Markdown. Wants a machine that has nothing else to do.
"""
import argparse
import collections
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
    return {"inference": report["inference"][0], "confirmed": report["confirmed"][0]}


def line_of(name, report):
    real, setting = report["confirmed"], report["confirmed"]["params"]
    numbers = [f"{real['expected'][key]:.3g} / {real['real'][key]:.3g}" for key in ("mean_ms", "p95_ms", "p99_ms", "throughput", "energy_mj")]
    return "  ".join([*name, f"{setting['batch_size']} x {setting['cores']}", *numbers, f"{100 * real['error']:+.1f} %"])


def one_round(options, rates, reports):
    for network in options.networks.split(","):
        model = options.work / f"{network}.onnx"
        run(options.program, options.work, "model", "zoo", network, "-o", model)
        for kind in ("single", "offline", "server", "multistream"):
            ms = rates.get(network, 1)
            scenario = {"server": f"server:16@{24 * ms:.3g}ms", "multistream": f"multistream:{667 / ms:.3g}hz"}.get(kind, kind)
            report = tune(options, model, scenario)
            rates.setdefault(network, report["confirmed"]["expected"]["mean_ms"])
            reports[network, scenario].append(report)
            print(line_of((network, scenario), report), flush=True)


def run_error(confirmed):
    """Of the time that a sample takes in a run, apart from waiting for others."""
    expected, real = (confirmed[key]["run_ms"] / confirmed[key]["run_samples"] for key in ("expected", "real"))
    return expected / real - 1


def print_table(reports):
    def each(rounds, number):
        return ", ".join(number(one["confirmed"]) for one in rounds)

    print("\n| network | scenario | batch x cores | mean ms, expected / real | p95 ms | errors | their median | errors of runs |\n|---|---|---|---|---|---|---|---|")
    medians, errors, of_runs = [], [], []
    for (network, scenario), rounds in reports.items():
        own = [one["confirmed"]["error"] for one in rounds]
        errors += map(abs, own)
        of_runs += [abs(run_error(one["confirmed"])) for one in rounds]
        medians.append(abs(statistics.median(own)))
        print(f"| {network} | {scenario} | {each(rounds, lambda c: '{batch_size} x {cores}'.format(**c['params']))} | "
              f"{each(rounds, lambda c: f'''{c['expected']['mean_ms']:.3g} / {c['real']['mean_ms']:.3g}''')} | "
              f"{each(rounds, lambda c: f'''{c['expected']['p95_ms']:.3g} / {c['real']['p95_ms']:.3g}''')} | "
              f"{each(rounds, lambda c: f'''{100 * c['error']:+.1f} %''')} | {100 * statistics.median(own):+.1f} % | {each(rounds, lambda c: f'{100 * run_error(c):+.1f} %')} |")
    print(f"\nmean of the sizes of the medians {100 * statistics.mean(medians):.1f} %, of all errors {100 * statistics.mean(errors):.1f} %, "
          f"largest error {100 * max(errors):.1f} %; of runs {100 * statistics.mean(of_runs):.1f} %, their median {100 * statistics.median(of_runs):.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--networks", default="resnet20,resnet56,mobilenet_v2_small")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", default="1,2", help="to choose from")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("inference-study"))
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    rates, reports = {}, collections.defaultdict(list)
    for _ in range(options.rounds):
        one_round(options, rates, reports)
    print_table(reports)
    if options.output:
        options.output.write_text(json.dumps([{"network": network, "scenario": scenario, "rounds": rounds}
                                              for (network, scenario), rounds in reports.items()], indent=1))


if __name__ == "__main__":
    main()
