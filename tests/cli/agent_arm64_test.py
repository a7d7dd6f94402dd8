"""fleetfit-agent for arm64: cross-built, small, and at work under an emulator. Takes ten minutes and more, so it is run at night."""
import hashlib
import json
import shutil
import subprocess
import sys

import cli

BUILD = cli.SOURCE / "build"
SYSROOT = BUILD / "arm64-sysroot"
AGENT = BUILD / "arm64/bin/fleetfit-agent"
MOST_BYTES = 20_000_000
# What every Debian has for all programs.
RUN_TIME = ("ld-linux-", "libc.so", "libm.so", "libgcc_s.so", "libstdc++.so")
SKIPPED = 77


def build():
    for command in (["tools/cross-arm64"], ["cmake", "--preset", "arm64"], ["cmake", "--build", "--preset", "arm64"]):
        subprocess.run(command, cwd=cli.SOURCE, check=True, stdout=subprocess.DEVNULL)


def libraries(program):
    """The files that it loads, and those that these load."""
    found, queue = {}, [program]
    while queue:
        listing = subprocess.run(["aarch64-linux-gnu-readelf", "-d", queue.pop()], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            if "(NEEDED)" not in line:
                continue
            name = line.split("[")[1].split("]")[0]
            if name in found or name.startswith(RUN_TIME):
                continue
            places = [SYSROOT / folder / "aarch64-linux-gnu" / name for folder in ("usr/lib", "lib")]
            found[name] = next(place.resolve() for place in places if place.exists())
            queue.append(found[name])
    return found


def emulate(*args, text=None):
    command = ["qemu-aarch64", "-L", SYSROOT, AGENT, *args]
    return subprocess.run(list(map(str, command)), input=text, capture_output=True, encoding="utf-8", timeout=1200)


class Arm64(cli.Case):
    @classmethod
    def setUpClass(cls):
        build()

    def test_program_and_libraries_are_small(self):
        stripped = self.folder / "fleetfit-agent"
        subprocess.run(["aarch64-linux-gnu-strip", "-o", stripped, AGENT], check=True)
        sizes = {name: file.stat().st_size for name, file in libraries(AGENT).items()} | {"fleetfit-agent": stripped.stat().st_size}
        print(sum(sizes.values()), "bytes:", dict(sorted(sizes.items(), key=lambda item: -item[1])))
        self.assertLess(sum(sizes.values()), MOST_BYTES)
        for heavy in "torch", "sqlite3", "libpq", "xgboost", "dnnl":
            self.assertFalse([name for name in sizes if heavy in name])

    def test_says_its_version(self):
        done = emulate("--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.split()[0], "fleetfit-agent")

    def job(self, kind, request, *files):
        """Lets the emulated agent do a job whose files are there already; gives its last line."""
        state, job = self.folder / "state", self.folder / "job"
        (state / "files").mkdir(parents=True, exist_ok=True)
        job.mkdir(exist_ok=True)
        for file in files:
            shutil.copy(file, state / "files" / hashlib.sha256(file.read_bytes()).hexdigest())
        (job / "job.json").write_text(json.dumps({
            "jobs": [{"id": 1, "attempt": 1, "kind": kind, "request": request}], "device": "pi4",
            "options": {"state": str(state), "public_key": "", "cache_bytes": 1 << 30, "allow_exec": False}}))
        connection = json.dumps({"server": "http://127.0.0.1:1", "token": "t", "authority": "", "device": "pi4"})
        done = emulate("job", job, text=connection + "\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def test_reads_a_bundle(self):
        model, bundle = self.folder / "net.onnx", self.folder / "net.ffb"
        self.succeed("model", "zoo", "resnet20", "--width", 0.25, "--image", 8, "--channels", 1, "--classes", 3, "-o", model)
        self.succeed("bundle", "draft", model, "-o", bundle)
        outcome = self.job("deploy", {"bundle": hashlib.sha256(bundle.read_bytes()).hexdigest()}, bundle)
        self.assertTrue(outcome["finished"], outcome)
        self.assertEqual(outcome["result"]["models"], 1)

    def test_executes_a_model_in_the_engine(self):
        # As a job does, but for the process in between, which would not be emulated.
        model = self.folder / "net.onnx"
        self.succeed("model", "zoo", "resnet20", "--width", 0.25, "--image", 8, "--channels", 1, "-o", model)
        requests = [{"id": 1, "op": "info"}, {"id": 2, "op": "load", "model": str(model), "threads": 1, "kernels": "xnnpack", "choices": ""},
                    {"id": 3, "op": "run", "runs": 2, "per_operator": True}]
        done = emulate("runtime", text="".join(json.dumps(request) + "\n" for request in requests))
        replies = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([reply["ok"] for reply in replies], [True] * 3, done)
        self.assertEqual(len(replies[2]["times_ms"]), 2)
        self.assertGreater(len(replies[2]["operators"]), 5)


if __name__ == "__main__":
    missing = [tool for tool in ("aarch64-linux-gnu-g++", "qemu-aarch64") if not shutil.which(tool)]
    if missing:
        print(f"{missing[0]} is not there; tools/install-packages arm64 installs it")
        sys.exit(SKIPPED)
    cli.main()
