"""`fleetfit server` and `fleetfit agent` as programs that tests start, kill and start again."""
import json
import re
import subprocess
import time
import urllib.request

import cli

LONG_S = 120


def wait_until(what, timeout_s=LONG_S):
    """Asks until the answer is true, and gives it."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        answer = what()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError("it did not come about")


class Server:
    """`fleetfit server`, which can be killed and started again on the same port."""

    def __init__(self, folder):
        self.folder = folder
        self.store = ["--store", f"sqlite:{folder / 'fleet.db'}"]
        created = cli.run(*self.store, "token", "create", "--role", "admin", "--json")
        assert created.status == 0, created
        self.token = json.loads(created.stdout)["token"]
        self.port = 0
        self.start()

    def start(self):
        command = [cli.program(), *self.store, "server", "--listen", f"127.0.0.1:{self.port}", "--files", str(self.folder / "files"), "--json"]
        with open(self.folder / "server.log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, encoding="utf-8")
        text = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", text)):
            line = self.process.stdout.readline()
            assert line, f"the server ended: {(self.folder / 'server.log').read_text()}"
            text += line
        self.port = int(found[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def call(self, method, path, body=None):
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, method=method,
                                         headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)

    def upload(self, file):
        return self.call("POST", f"/files?name={file.name}", file.read_bytes())["hash"]


class Agent:
    """`fleetfit agent` of a device that it adds to the server."""

    def __init__(self, server, name):
        self.server, self.name, self.process = server, name, None
        folder = server.folder / f"agent-{name}"
        folder.mkdir()
        self.state, self.log_file, self.token_file = folder / "state", folder / "log", folder / "token"
        self.token_file.touch(mode=0o600)
        self.token_file.write_text(server.call("POST", "/devices", {"name": name})["token"] + "\n")

    def start(self):
        command = [cli.program(), "agent", "--server", self.server.url, "--token-file", self.token_file, "--name", self.name, "--state", self.state,
                   "--heartbeat", "0.2"]
        with open(self.log_file, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stderr=log)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def log(self):
        return self.log_file.read_text()
