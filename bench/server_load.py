#!/usr/bin/env python3
"""A fleet's server under the load that many connections make, on this machine:

    bench/server_load.py FLEETFIT [FLEETFIT…] [--seconds 10] [--connections 1000] [--idle 10000] [--tls]

For each program: a server over a new store of SQLite with 1,000 devices; wrk asks for the devices and for the summary; then one address keeps many idle
connections, and readers of the stream of events read nothing, while somebody else asks. Prints a table. Needs wrk (`tools/install-packages bench`).
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time

DEVICES = 1000
TOKENS = 200  # a token may ask 200 times a second
READERS = 100
EVENTS = 6000
CROWD = "127.0.0.2"  # the address that takes what it can get
OTHER = "127.0.0.3"

LUA = """
local tokens = {}
for token in io.lines(os.getenv("TOKENS")) do tokens[#tokens + 1] = token end
local turn = 0
request = function()
  turn = turn % #tokens + 1
  return wrk.format("GET", nil, {["Authorization"] = "Bearer " .. tokens[turn]})
end
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("RESULT %d %d %d %f %f %f\\n", summary.requests, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


class Server:
    def __init__(self, program, folder, tls):
        self.program, self.folder = program, folder
        self.store = ["--store", f"sqlite:{folder / 'fleet.db'}"]
        self.context = None
        flags = []
        if tls:
            key, certificate = folder / "key.pem", folder / "cert.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                            "/CN=localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
            flags = ["--tls-cert", certificate, "--tls-key", key]
            self.context = ssl.create_default_context(cafile=str(certificate))
            self.context.check_hostname = False
        self.admin = self.run("token", "create", "--role", "admin").strip()
        agent = self.run("token", "create", "--role", "agent").strip()
        self.process = subprocess.Popen([program, *self.store, "server", "--listen", "127.0.0.1:0", "--files", str(folder / "files"), *map(str, flags)],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
        self.url = re.search(r"http\S+", self.process.stdout.readline())[0]
        self.port = int(self.url.rsplit(":", 1)[1])
        self.tokens = folder / "tokens"
        self.tokens.write_text("".join(self.ask("POST", "/tokens", {"name": f"v{i}", "role": "viewer"})["token"] + "\n" for i in range(TOKENS)))
        for i in range(DEVICES):
            name = f"device-{i:04}"
            self.ask("POST", f"/agent/register?device={name}", {"name": name, "version": "1", "hardware": "a board"}, agent)
        self.agent = agent

    def run(self, *arguments):
        return subprocess.run([self.program, *self.store, *arguments], check=True, capture_output=True, encoding="utf-8").stdout

    def line(self, address="127.0.0.1", timeout=30):
        line = socket.create_connection(("127.0.0.1", self.port), timeout, (address, 0))
        return self.context.wrap_socket(line) if self.context else line

    def connection(self, address="127.0.0.1", timeout=30):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        connection.sock = self.line(address, timeout)
        return connection

    def ask(self, method, path, body=None, token=None, address="127.0.0.1"):
        connection = self.connection(address)
        connection.request(method, "/api/v1" + path, json.dumps(body) if body is not None else None,
                           {"Authorization": f"Bearer {token or self.admin}", "Content-Type": "application/json"})
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        if reply.status >= 300:
            raise RuntimeError(f"{method} {path}: {reply.status} {text[:200]}")
        return json.loads(text)

    def memory_mb(self, what="VmRSS"):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(what + r":\s+(\d+)", text)[1]) / 1000

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def load(server, path, options):
    script = server.folder / "load.lua"
    script.write_text(LUA)
    done = subprocess.run(["wrk", "-t", "2", "-c", str(options.connections), "-d", f"{options.seconds}s", "--timeout", "10s", "-s", script, server.url + "/api/v1" + path],
                          capture_output=True, encoding="utf-8", check=True, env={**os.environ, "TOKENS": str(server.tokens)})
    count, refused, broken, seconds, median, last = re.search(r"RESULT (.*)", done.stdout)[1].split()
    return f"{int(count) / float(seconds):8.0f} a second, median {float(median):7.1f} ms, p99 {float(last):7.1f} ms; refused {refused}, broken {broken}"


def others(server):
    """How long somebody else waits for 50 answers, each over a new connection."""
    times, lost = [], 0
    for _ in range(50):
        start = time.monotonic()
        try:
            server.ask("GET", "/summary", address=OTHER)
        except (OSError, http.client.HTTPException):
            lost += 1
            if lost >= 3:
                return f"nobody answers: {lost} of {lost + len(times)} attempts failed"
        times.append((time.monotonic() - start) * 1000)
    times.sort()
    return f"median {times[len(times) // 2]:.1f} ms, longest {times[-1]:.1f} ms, lost {lost}"


def crowd(server, count):
    """Connections that have had one answer each and are kept open."""
    request = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def one(_):
        try:
            line = server.line(CROWD, timeout=5)
            line.sendall(request)
            return line if line.recv(4096) else None
        except OSError:
            return None

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return [line for line in pool.map(one, range(count)) if line]


def readers(server):
    """Streams of events that nobody reads, while many events happen."""
    lines = []
    for _ in range(READERS):
        line = server.line(CROWD)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.sendall(f"GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.admin}\r\nLast-Event-ID: 0\r\n\r\n".encode())
        lines.append(line)
    sequence = 0
    while sequence < EVENTS:
        events = [{"sequence": sequence + i + 1, "time": "2026-01-01T00:00:00.000Z", "kind": "log", "body": {"message": "x" * 1000}} for i in range(100)]
        server.ask("POST", "/agent/events?device=device-0000", {"events": events}, server.agent)
        sequence += 100
    time.sleep(3)
    return lines


def measure(program, options):
    with tempfile.TemporaryDirectory(prefix="ff-load-") as folder:
        server = Server(program, pathlib.Path(folder), options.tls)
        print(f"{program} ({'TLS' if options.tls else 'plain HTTP'}, {options.connections} connections, {DEVICES} devices)", flush=True)
        print(f"  memory at first             {server.memory_mb():8.0f} MB", flush=True)
        for path in ("/devices", "/summary"):
            print(f"  {path:28}{load(server, path, options)}", flush=True)
        print(f"  memory                      {server.memory_mb():8.0f} MB", flush=True)
        lines = crowd(server, options.idle)
        print(f"  {len(lines)} of {options.idle} idle ones were answered; others: {others(server)}", flush=True)
        print(f"  memory                      {server.memory_mb():8.0f} MB", flush=True)
        for line in lines:
            line.close()
        lines = readers(server)
        print(f"  {READERS} streams that nobody reads; others: {others(server)}", flush=True)
        print(f"  memory                      {server.memory_mb():8.0f} MB, at most {server.memory_mb('VmHWM'):.0f} MB", flush=True)
        for line in lines:
            line.close()
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="FLEETFIT")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--tls", action="store_true")
    options = parser.parse_args()
    if not shutil.which("wrk"):
        print("server_load: skipped: wrk is not installed; tools/install-packages bench installs it", file=sys.stderr)
        return 77
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for program in options.programs:
        measure(program, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
