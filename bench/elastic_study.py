#!/usr/bin/env python3
"""How good elastic models are: networks x ways to make them elastic, at shares of the original's latency, as in AdaptiveNet.
Ways that do not cut the network into blocks (early exits, one width for all layers) are baselines that learn for as many epochs.

    bench/elastic_study.py learn [--compute cuda] [--only NAME,…] [--jobs N]   trains networks and makes them elastic
    bench/elastic_study.py adapt [--only NAME,…] [-o study.json]               searches each on this machine, prints tables
    bench/elastic_study.py shift [--only NAME,…] [--devices 10] [--alpha 0.5]  devices whose data are shifted: their own choice against the cloud's
    bench/elastic_study.py load [--only NAME,…] [--seconds 36]                 serves while a load comes and goes

Each piece of work is done once: files that exist are kept, what was interrupted is resumed. `learn` needs fleetfit-train alone, so that
it can be done on another machine than `adapt`, which times networks and wants a machine that has nothing else to do.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
NETWORKS = {  # name: network, data, epochs of training
    "resnet20-fashion": ("resnet20", "fashion", 30),
    "resnet20-cifar": ("resnet20", "cifar", 40),
    "resnet56-cifar": ("resnet56", "cifar", 30),
    "mobilenet-cifar": ("mobilenet_v2_small", "cifar", 30),
    "mobilenet-fashion": ("mobilenet_v2_small", "fashion", 20),
    "user-fashion": ("user-fashion.onnx", "fashion", 0),  # somebody's own: bench/users_network.py, or a file with user-fashion.json beside it: {"accuracy": …}
    "user-cifar": ("user-cifar.onnx", "cifar", 0),
}
STRUCTURE = {  # how a network is cut, where the default would leave its largest layers whole: plain networks of few layers
    "user-fashion": ["--granularity", 0.4],
    "user-cifar": ["--granularity", 0.4],
}
WAYS = {  # how a network is made elastic; three epochs each, but for paper-10, as the paper asks for more
    "default": ["--distill-epochs", 1, "--tune-epochs", 2],
    "distil-only": ["--distill-epochs", 3, "--tune-epochs", 0],
    "tune-only": ["--distill-epochs", 0, "--tune-epochs", 3],
    "prune-only": ["--merge", 0, "--distill-epochs", 1, "--tune-epochs", 2],
    "paper": ["--recipe", "paper", "--distill-epochs", 1, "--tune-epochs", 2],
    "paper-10": ["--recipe", "paper", "--distill-epochs", 4, "--tune-epochs", 6],
    "exits": ["--distill-epochs", 1, "--tune-epochs", 2],
    "uniform": ["--distill-epochs", 0, "--tune-epochs", 2],
}
BASELINES = {  # ways with branches of bench/elastic_baselines, made of a bundle that was learned so
    "exits": ["--merge", 0, "--distill-epochs", 0, "--tune-epochs", 0],
    "uniform": ["--merge", 0, "--distill-epochs", 1, "--tune-epochs", 0],
}

SPIN = """import time
start = time.time()
while (now := time.time() - start) < {seconds}:
    if now % 16 < 8: time.sleep(0.01)  # half of the time there is no load
"""


class Study:
    def __init__(self, args):
        self.args = args
        self.folder = pathlib.Path(args.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = {"fashion": args.fashion, "cifar": args.cifar}
        self.shares = [float(share) for share in args.shares.split(",")]
        self.names = args.only.split(",") if args.only else list(NETWORKS)

    def call(self, program, *args, ok=(0,)):
        command = [program, *map(str, args)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode not in ok:
            raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
        return json.loads(done.stdout)

    def once(self, output, note, program, *args):
        """Runs a verb that writes `output`, unless that is there; keeps what it said in `note`."""
        if output.exists() and note.exists():
            return json.loads(note.read_text())
        start = time.time()
        said = self.call(program, *args, "--json", "--quiet", "--resume", "-o", output)
        said["study_elapsed_s"] = time.time() - start
        note.write_text(json.dumps(said, indent=1))
        print(f"{time.strftime('%T')} {output.name}: {json.dumps(said.get('accuracy'))[:400]} in {said['study_elapsed_s']:.0f} s", flush=True)
        return said

    def train(self, name):
        network, data, epochs = NETWORKS[name]
        model = self.folder / f"{name}.onnx"
        self.once(model, self.folder / f"{name}.json", self.args.train_program, "train", network, "--data", self.data[data], "--epochs", epochs,
                  "--compute", self.args.compute, *self.threads())
        return model

    def elastify(self, name, way):
        model = self.folder / f"{name}.onnx"
        if way in BASELINES and not (self.folder / f"{name}-{way}.ffb").exists():
            start, model = (self.folder / f"{name}-{way}-{step}.ffb" for step in ("start", "draft"))
            self.learn_branches(name, self.folder / f"{name}.onnx", start, [*STRUCTURE.get(name, []), *BASELINES[way]])
            subprocess.run([self.args.baselines_program, way, start, model], check=True, stdout=subprocess.DEVNULL)
        structure = [] if way in BASELINES else STRUCTURE.get(name, [])  # a draft is cut already
        self.learn_branches(name, model, self.folder / f"{name}-{way}.ffb", [*structure, *WAYS[way]])

    def learn_branches(self, name, model, bundle, options):
        _, data, _ = NETWORKS[name]
        self.once(bundle, bundle.with_suffix(".json"), self.args.train_program, "elastify", model, "--data", self.data[data], "--compute",
                  self.args.compute, *options, *self.threads())

    def threads(self):
        return ["--threads", max(1, (os.cpu_count() or 1) // self.args.jobs)]

    def learn(self):
        ways = self.args.ways.split(",")
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            trained = {pool.submit(self.train, name): name for name in self.names}
            waiting = []
            for done in concurrent.futures.as_completed(trained):
                if done.exception():
                    print(f"{trained[done]}: {done.exception()}", file=sys.stderr, flush=True)
                    continue
                waiting += [pool.submit(self.elastify, trained[done], way) for way in ways]
            for done in concurrent.futures.as_completed(waiting):
                if done.exception():
                    print(done.exception(), file=sys.stderr, flush=True)

    def bundles(self):
        """Those that were learned: (name of the network, way, file)."""
        for name in self.names:
            for way in self.args.ways.split(","):
                bundle = self.folder / f"{name}-{way}.ffb"
                if bundle.exists():
                    yield name, way, bundle

    def adapt(self):
        rows = []
        for name, way, bundle in self.bundles():
            rows += self.adapt_one(name, way, bundle)
        if self.args.output:
            pathlib.Path(self.args.output).write_text(json.dumps(rows, indent=1))

    def shift(self):
        """The cloud chooses once, by data of all classes; each device for itself, by its own data. Both are judged by the device's test data."""
        for name, _, bundle in self.bundles():
            for share in self.shares:
                self.shift_one(name, bundle, share)

    def shift_one(self, name, bundle, share):
        data = self.data[NETWORKS[name][1]]
        full = self.full_ms(self.folder / f"{name}.onnx")
        table = self.folder / f"{bundle.stem}.table.json"
        cloud = self.search(bundle, data, full * share, "--save-table", table)["subnet"]
        gains = []
        for device in range(1, self.args.devices + 1):
            found = self.search(bundle, f"shifted:{self.args.alpha}@{device}:{data}", full * share, "--table", table, "--compare", cloud, whole=True)
            gains.append(100 * (found["best"]["accuracy"] - found["compared"]["accuracy"]))
            print(f"  device {device}: own {found['best']['accuracy']:.4f} at {found['best']['latency_ms'] / full:.1%}, cloud's "
                  f"{found['compared']['accuracy']:.4f} at {found['compared']['latency_ms'] / full:.1%}, {found['images']['test']} test images", flush=True)
        print(f"{bundle.stem} at {share:.0%}: own choice {sum(gains) / len(gains):+.2f} points on average, {min(gains):+.2f} to {max(gains):+.2f}", flush=True)

    def load(self):
        """Requests as quick as they are answered, with a budget that the original just keeps while nothing else runs."""
        for name, _, bundle in self.bundles():
            self.load_one(name, bundle)

    def load_one(self, name, bundle):
        data = self.data[NETWORKS[name][1]]
        budget_ms = 1.1 * self.full_ms(self.folder / f"{name}.onnx")
        pool, log = (self.folder / f"{bundle.stem}-load{suffix}" for suffix in (".pool.json", ".jsonl"))
        self.call(self.args.program, "--json", "--quiet", "adapt", bundle, "--data", data, "--budget-ms", budget_ms, "-o", pool, *self.args.adapt_options.split())
        spinners = [subprocess.Popen([sys.executable, "-c", SPIN.format(seconds=self.args.seconds)]) for _ in range(self.args.spinners)]
        try:
            said = self.call(self.args.program, "--json", "run", bundle, "--pool", pool, "--budget-ms", budget_ms, "--data", data, "--seconds",
                             self.args.seconds, "--events", log, ok=(0, 1))
        finally:
            for spinner in spinners:
                spinner.kill()
        print(f"{bundle.stem}: {said['requests']} requests, {said['within_budget']:.1%} within {budget_ms:.3f} ms, {said['within_budget_after_1s']:.1%} of those later than a "
              f"second after a change that the loop itself saw; {said['switches']} switches of at most {said['longest_switch_us']:.1f} us; accuracy {said['accuracy']:.4f}", flush=True)
        accuracy = {entry["subnet"]: entry["accuracy"] for entry in json.loads(pool.read_text())["entries"]}
        events = [json.loads(line) for line in log.read_text().splitlines()]
        for half in range(8, int(self.args.seconds) + 1, 8):
            served = [event["to"] for event in events if event.get("time", half) < half - 0.5 and "to" in event][-1]
            print(f"  after 8 s {'under load' if half % 16 == 0 else 'without load'}: {served}, {accuracy[served]:.4f} of the pool's {max(accuracy.values()):.4f}", flush=True)

    def search(self, bundle, data, budget_ms, *options, whole=False):
        found = self.call(self.args.program, "--json", "--quiet", "adapt", bundle, "--data", data, "--budget-ms", budget_ms, "-o",
                          self.folder / "shift.pool.json", *options, *self.args.adapt_options.split())
        return found if whole else found["best"]

    def adapt_one(self, name, way, bundle):
        """Shares are of the original's latency as measured in turns with what was found: a machine is faster at one time than at another."""
        model = self.folder / f"{name}.onnx"
        data = self.data[NETWORKS[name][1]]
        original = json.loads((self.folder / f"{name}.json").read_text())["accuracy"]
        code = self.call(self.args.program, "--json", "bundle", "show", bundle)["original"]
        size = bundle.stat().st_size / model.stat().st_size
        rows = []
        print(f"{name} {way}: original {original:.4f}, bundle {size:.2f} x", flush=True)
        for share in self.shares:
            found = self.call(self.args.program, "--json", "--quiet", "adapt", bundle, "--data", data, "--budget-ms", self.full_ms(model) * share, "-o",
                              self.folder / f"{name}-{way}-{share}.pool.json", "--compare", code, *self.args.adapt_options.split(), ok=(0, 1))
            best = found["best"]
            if not best:
                print(f"  {share:.0%}: no subnet is that quick", flush=True)
                continue
            whole = found["compared"]
            rows.append({"network": name, "way": way, "budget": share, "original": original, "compared": whole, "best": best, "bundle_size": size,
                         "evaluated": found["evaluated"], "elapsed_s": found["elapsed_s"], "saved": found["reuse"]["saved_fraction"]})
            print(f"  {share:.0%}: {best['accuracy']:.4f} at {best['latency_ms'] / whole['latency_ms']:.1%} ({best['latency_ms']:.3f} of "
                  f"{whole['latency_ms']:.3f} ms), original {whole['accuracy']:.4f} on the same images, {found['evaluated']} subnets, "
                  f"{found['elapsed_s']:.1f} s, reuse saved {found['reuse']['saved_fraction']:.0%}", flush=True)
        return rows

    def full_ms(self, model):
        return self.call(self.args.program, "--json", "measure", model, "--max-time", 4, ok=(0, 1))[0]["latency_ms"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("learn", "adapt", "shift", "load"))
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/fleetfit"))
    parser.add_argument("--train-program", default=str(ROOT / "build/release/bin/fleetfit-train"))
    parser.add_argument("--baselines-program", default=str(ROOT / "build/release/bin/elastic_baselines"))
    parser.add_argument("--folder", default=str(ROOT / "build/elastic-study"))
    parser.add_argument("--compute", default="cpu")
    parser.add_argument("--only", help="names of networks: " + ", ".join(NETWORKS))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--jobs", type=int, default=1, help="pieces of work at a time")
    parser.add_argument("--fashion", default="fashion-mnist")
    parser.add_argument("--cifar", default="cifar10:build/cifar/package")
    parser.add_argument("--adapt-options", default="")
    parser.add_argument("--shares", default="0.9,0.8,0.7,0.6,0.5,0.4,0.3", help="budgets, of the original's latency")
    parser.add_argument("--devices", type=int, default=10)
    parser.add_argument("--alpha", type=float, default=0.5, help="of Dirichlet's distribution")
    parser.add_argument("--seconds", type=float, default=36, help="how long to serve")
    parser.add_argument("--spinners", type=int, default=2, help="processes that are the load")
    parser.add_argument("-o", "--output")
    study = Study(parser.parse_args())
    getattr(study, study.args.step)()


if __name__ == "__main__":
    main()
