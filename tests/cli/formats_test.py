"""What version 0.1.0 has written is read, written and printed as by that version, octet for octet."""
import http.client
import json
import pathlib
import sqlite3
import subprocess

import cli

FILES = pathlib.Path(__file__).parent / "formats"

# Pages of the server's API; those of devices tell what time it is.
PAGES = ["tokens", "audit?limit=100", "devices?limit=100", "devices/pi", "files", "jobs?limit=100", *(f"jobs/{i}" for i in range(1, 7)), "events?limit=100",
         "measurements?limit=100", *(f"measurements/{i}" for i in range(1, 7)), "models", "latencies", "studies", "studies/small", "studies/small/trials"]

COMMANDS = [["token", "list"], ["study", "list"], ["study", "show", "small"], ["study", "best", "small"]]


def rows(database):
    """All that is in a data base, as text."""
    with sqlite3.connect(database) as connection:
        return "\n".join(line for line in connection.iterdump() if line.startswith("INSERT"))


class Formats(cli.Case):
    def setUp(self):
        super().setUp()
        self.database = self.folder / "old.db"
        connection = sqlite3.connect(self.database)
        connection.executescript((FILES / "store.sql").read_text())
        connection.executescript("PRAGMA application_id = 1717987700; PRAGMA user_version = 3;")
        connection.close()
        self.store = f"sqlite:{self.database}"

    def expect(self, name, text):
        self.assertEqual(text, (FILES / name).read_text(), name)

    def test_a_store_is_copied_row_by_row(self):
        self.succeed("store", "copy", self.store, f"sqlite:{self.folder / 'new.db'}")
        self.assertEqual(rows(self.folder / "new.db"), rows(self.database))

    def test_records_are_printed(self):
        text = "".join(f"{' '.join(command)}\n{self.succeed('--json', '--store', self.store, *command).stdout}" for command in COMMANDS)
        devices = self.succeed_json("--store", self.store, "device", "list")
        devices = [device for device in devices if device["name"] != "local"]
        self.expect("printed.txt", text + json.dumps(devices, indent=2) + "\n")

    def test_records_are_served(self):
        server = subprocess.Popen([cli.program(), "--json", "--store", self.store, "server", "--listen", "127.0.0.1:0", "--files", str(self.folder / "files"), "--keep-events", "100000"],
                                  stdout=subprocess.PIPE, encoding="utf-8")
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        text = ""
        while not text.rstrip().endswith("}"):
            text += server.stdout.readline()
        port = int(json.loads(text)["url"].rsplit(":", 1)[1])
        token = (FILES / "token").read_text().strip()
        replies = ""
        for page in PAGES:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", f"/api/v1/{page}", headers={"Authorization": f"Bearer {token}"})
            replies += f"{page}\n{connection.getresponse().read().decode()}"
            connection.close()
        self.expect("served.txt", replies)

    def test_a_predictor_predicts(self):
        network = self.folder / "net.onnx"
        self.succeed("model", "zoo", "squeezenet1_1", "--width", "0.25", "--image", "32", "--classes", "10", "-o", network)
        printed = self.succeed("--json", "predict", "run", FILES / "predictor.json", network).stdout
        self.expect("predicted.txt", printed.replace(str(self.folder), "FOLDER"))


if __name__ == "__main__":
    cli.main()
