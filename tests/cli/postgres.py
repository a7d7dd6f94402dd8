"""The PostgreSQL server that tools/with-postgres has started beside a test."""
import itertools
import os
import pathlib
import subprocess
import time

_count = itertools.count()


class Server:
    def __init__(self):
        self.url = os.environ.get("FLEETFIT_TEST_POSTGRES", "")
        self.folder = pathlib.Path(os.environ.get("FLEETFIT_TEST_POSTGRES_FOLDER", "/nowhere"))

    def is_there(self):
        return bool(self.url)

    def new_store(self):
        """The URL of a store that is empty."""
        return f"{self.url}&schema=p{os.getpid()}_{next(_count)}"

    def rows(self, store, sql):
        """What a query gives in a store, as texts; waits for a server that is just being started."""
        schema = store.rpartition("schema=")[2]
        for _ in range(50):
            done = subprocess.run(["psql", self.url, "-X", "-q", "-A", "-t", "-F", "|", "-c", f"SET search_path TO {schema}", "-c", sql],
                                  capture_output=True, text=True)
            if done.returncode == 0:
                return [line.split("|") for line in done.stdout.splitlines()]
            time.sleep(0.2)
        raise RuntimeError(done.stderr)

    def postmaster(self):
        """Its process id; None while it is being started."""
        try:
            return int((self.folder / "data/postmaster.pid").read_text().split()[0])
        except (OSError, IndexError, ValueError):
            return None

    def processes(self):
        """Ids of the postmaster and of those that it has started."""
        first = self.postmaster()
        if first is None:
            return []
        children = []
        for entry in os.listdir("/proc"):
            try:
                stat = pathlib.Path("/proc", entry, "stat").read_text() if entry.isdigit() else ""
            except OSError:
                continue
            fields = stat.rpartition(")")[2].split()
            if len(fields) > 1 and fields[1] == str(first):
                children.append(int(entry))
        return [first, *children]
