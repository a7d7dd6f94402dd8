"""fleetfit server: TLS, addresses, sign-in, jobs that survive kill -9, odd requests over real sockets."""
import hashlib
import http.client
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import time
import warnings

import cli


class ServerCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.store = f"sqlite:{self.folder / 'store.db'}"
        self.context = None
        self.admin = self.token("admin")

    def token(self, role, *flags):
        return self.succeed("--store", self.store, "token", "create", "--role", role, *flags).stdout.strip()

    def start(self, *flags):
        self.process = subprocess.Popen(
            [cli.program(), "--json", "--store", self.store, "server", "--listen", "127.0.0.1:0", "--files", str(self.folder / "files"), *map(str, flags)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", cwd=self.folder)
        self.addCleanup(self.end, self.process)
        text = ""
        while not text.rstrip().endswith("}"):
            line = self.process.stdout.readline()
            if not line:
                self.fail(self.process.stderr.read())
            text += line
        self.url = json.loads(text)["url"]
        self.port = int(self.url.rsplit(":", 1)[1])

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()

    def connect(self):
        if self.context:
            return http.client.HTTPSConnection("localhost", self.port, context=self.context, timeout=30)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def call(self, method, path, body=None, token=None, headers=None):
        connection = self.connect()
        headers = dict(headers or {})
        if token != "":
            headers["Authorization"] = "Bearer " + (token or self.admin)
        if isinstance(body, dict):
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        connection.request(method, "/api/v1" + path, body, headers)
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        self.reply = reply
        return reply.status, json.loads(text) if reply.headers.get_content_type() == "application/json" else text

    def raw(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as line:
            line.sendall(data)
            text = b""
            while piece := line.recv(4096):
                text += piece
        return text

    def add_device(self, name):
        status, device = self.call("POST", "/devices", {"name": name})
        self.assertEqual(status, 201, device)
        agent = device["token"]
        self.assertEqual(self.call("POST", "/agent/register", {"name": name, "version": "1"}, agent)[0], 200)
        return agent


class Listening(ServerCase):
    def test_refuses_other_machines_without_tls(self):
        self.refuse("--store", self.store, "server", "--listen", "0.0.0.0:0", naming="--tls-cert")
        self.refuse("--store", self.store, "server", "--listen", "[::]:0", naming="--tls-cert")
        self.refuse("--store", self.store, "server", "--listen", "nowhere", naming="--listen nowhere")
        self.refuse("--store", self.store, "server", "--tls-cert", "x", naming="--tls-key")
        self.refuse("--store", self.store, "server", "--tls-cert", "/none.pem", "--tls-key", "/none.pem", naming="/none.pem")
        self.refuse("--store", self.store, "server", "--trusted-proxy", "10.0.0.0/40", naming="--trusted-proxy: 10.0.0.0/40")

    def make_certificate(self):
        certificate, key = self.folder / "cert.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        return certificate, key

    def test_refuses_a_key_that_everybody_can_read(self):
        certificate, key = self.make_certificate()
        key.chmod(0o644)
        outcome = self.refuse("--store", self.store, "server", "--listen", "127.0.0.1:0", "--files", self.folder / "files", "--tls-cert", certificate,
                              "--tls-key", key, naming=f"chmod 600 {key}")
        self.assertEqual(outcome.status, 2)

    def test_speaks_tls_1_2_with_forward_secrecy_and_aead_alone(self):
        certificate, key = self.make_certificate()
        self.start("--tls-cert", certificate, "--tls-key", key)
        for cipher, spoken in (("ECDHE-ECDSA-AES128-GCM-SHA256", True), ("ECDHE-ECDSA-CHACHA20-POLY1305", True), ("ECDHE-ECDSA-AES128-SHA256", False),
                               ("ECDHE-ECDSA-AES256-SHA", False), ("ECDHE-ECDSA-AES128-CCM", False)):
            context = ssl.create_default_context(cafile=str(certificate))
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(cipher)
            with socket.create_connection(("127.0.0.1", self.port)) as line:
                try:
                    with context.wrap_socket(line, server_hostname="localhost") as secure:
                        self.assertEqual(secure.cipher()[0], cipher)
                    self.assertTrue(spoken, cipher)
                except ssl.SSLError:
                    self.assertFalse(spoken, cipher)

    def test_speaks_tls(self):
        certificate, key = self.make_certificate()
        self.start("--tls-cert", certificate, "--tls-key", key)
        self.assertTrue(self.url.startswith("https://"))
        self.context = ssl.create_default_context(cafile=str(certificate))
        self.assertEqual(self.call("GET", "/health", token="")[1]["status"], "ok")
        self.assertIn("max-age", self.reply.headers["Strict-Transport-Security"])
        status, _ = self.call("POST", "/session", {"token": self.admin}, token="")
        self.assertEqual(status, 200)
        self.assertIn("Secure", self.reply.headers["Set-Cookie"])
        self.assertEqual(self.call("POST", "/files?name=d.bin", b"x" * 3_000_000)[0], 201)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        with warnings.catch_warnings():  # Python does not like it either
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", self.port)) as line, self.assertRaises((ssl.SSLError, ConnectionError)):
            old.wrap_socket(line)

    def test_stops_when_asked_and_says_how_to_begin(self):
        process = subprocess.Popen([cli.program(), "--store", f"sqlite:{self.folder / 'new.db'}", "server", "--listen", "127.0.0.1:0", "--files",
                                    str(self.folder / "f")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        self.addCleanup(self.end, process)
        self.assertRegex(process.stdout.readline(), r"\Alistening on http://127\.0\.0\.1:\d+\n\Z")
        self.assertIn("fleetfit token create --role admin", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 0)


class Requests(ServerCase):
    def test_trusted_proxies_say_who_asks(self):
        self.start("--trusted-proxy", "127.0.0.1", "--trusted-proxy", "10.0.0.0/8")
        forwarded = {"X-Forwarded-For": "192.0.2.9, 198.51.100.7, 10.1.2.3"}
        self.assertEqual(self.call("POST", "/session", {"token": self.admin}, token="", headers=forwarded)[0], 200)
        self.assertEqual(self.sign_ins(), ["from 198.51.100.7"])

    def test_nobody_else_says_who_asks(self):
        self.start("--trusted-proxy", "10.0.0.0/8")
        forwarded = {"X-Forwarded-For": "198.51.100.7", "Forwarded": "for=198.51.100.7"}
        self.assertEqual(self.call("POST", "/session", {"token": self.admin}, token="", headers=forwarded)[0], 200)
        self.assertEqual(self.sign_ins(), ["from 127.0.0.1"])

    def sign_ins(self):
        return [entry["detail"] for entry in self.call("GET", "/audit")[1]["items"] if entry["action"] == "session.open"]

    def test_refuses_odd_requests_and_goes_on(self):
        self.start()
        self.assertEqual(self.call("GET", "/summary", token="")[0], 401)
        self.assertEqual(self.call("BREW", "/summary")[0], 405)
        self.assertEqual(self.call("GET", "/devices/..%2f..%2fetc")[0], 404)
        self.assertTrue(self.raw(b"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 "))
        self.assertIn(b" 400 ", self.raw(b"hello\r\n\r\n").split(b"\r\n")[0])
        self.assertIn(b" 411 ", self.raw(b"POST /api/v1/jobs HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").split(b"\r\n")[0])
        self.assertIn(b" 431 ", self.raw(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 4000).split(b"\r\n")[0])
        self.assertEqual(self.call("POST", "/jobs", {"x": "y" * 2_000_000})[0], 413)
        self.assertEqual(self.call("GET", "/health", token="")[0], 200)
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=30)
        self.assertNotIn(self.admin, errors)

    def test_a_model_goes_up_and_a_broken_one_does_not(self):
        self.start()
        model = self.folder / "net.onnx"
        self.succeed("model", "zoo", "squeezenet1_1", "-o", model)
        octets = model.read_bytes()
        status, file = self.call("POST", "/files?name=net.onnx", octets)
        self.assertEqual((status, file.get("kind")), (201, "onnx"), file)
        self.assertEqual(self.call("GET", f"/files/{file['hash']}")[1], octets)
        self.assertEqual(self.call("GET", "/models")[1]["items"][0]["name"], "net")
        status, problem = self.call("POST", "/files?name=bad.onnx", octets[:-100])
        self.assertEqual(status, 400)
        self.assertTrue(problem["error"]["message"].startswith("bad.onnx"), problem)
        self.assertEqual(list((self.folder / "files" / "incoming").iterdir()), [])


    def test_says_once_which_token_was_refused_and_never_the_token(self):
        self.start()
        for _ in range(5):
            self.assertEqual(self.call("GET", "/devices/pi4", token="a-secret-guess")[0], 401)
        self.assertEqual(self.call("POST", "/jobs", {"x": 1}, token="a-secret-guess")[0], 401)
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=30)
        digest = hashlib.sha256(b"a-secret-guess").hexdigest()
        self.assertEqual(errors, f"fleetfit: 127.0.0.1: a token was refused: GET /api/v1/devices/{{name}}, a token of hash {digest[:8]}…\n")

    def test_wrong_tokens_count_with_a_body_too(self):
        self.start()
        statuses = [self.call("POST", "/jobs", {"x": 1}, token="guess")[0] for _ in range(30)]
        self.assertEqual(statuses[:20], [401] * 20)
        self.assertIn(429, statuses[20:])
        self.assertEqual(self.call("GET", "/summary")[0], 200)

    def test_takes_its_store_from_others(self):
        self.assertEqual(self.mode("store.db"), 0o600)
        os.chmod(self.folder / "store.db", 0o644)
        self.start()
        self.assertEqual(self.mode("store.db"), 0o600)
        self.add_device("pi4")
        for part in self.folder.glob("store.db-*"):
            self.assertEqual(self.mode(part.name), 0o600)
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=30)
        self.assertRegex(errors, r"\Afleetfit: [^\n]*store\.db: all users of this machine could read [^\n]*\n\Z")

    def mode(self, name):
        return stat.S_IMODE((self.folder / name).stat().st_mode)


class Killed(ServerCase):
    def test_jobs_survive_kill_9(self):
        self.start()
        agent = self.add_device("pi4")
        jobs = [self.call("POST", "/jobs", {"device": "pi4", "kind": "probe", "request": {}, "key": f"k{i}"})[1]["id"] for i in range(3)]
        claimed = self.call("POST", "/agent/claim", {"most": 1}, agent)[1]["jobs"]
        self.assertEqual([job["id"] for job in claimed], jobs[:1])
        self.process.kill()
        self.process.wait()

        self.start()
        states = {job["id"]: job["state"] for job in self.call("GET", "/jobs")[1]["items"]}
        self.assertEqual(states, {jobs[0]: "running", jobs[1]: "waiting", jobs[2]: "waiting"})
        again = self.call("POST", "/jobs", {"device": "pi4", "kind": "probe", "request": {}, "key": "k1"})
        self.assertEqual((again[0], again[1]["id"]), (200, jobs[1]))
        results = {"results": [{"job": jobs[0], "attempt": 1, "state": "finished", "result": {"cpu": "a"}}]}
        for ended in ("now", "already"):
            self.assertEqual(self.call("POST", "/agent/results", results, agent)[1]["results"][0]["ended"], ended)
        self.assertEqual(self.call("GET", f"/jobs/{jobs[0]}")[1]["result"], {"cpu": "a"})

    def test_events_stream_and_go_on_after_a_restart(self):
        self.start()
        self.add_device("pi4")
        last = self.read_events(0, 2)[-1]
        self.process.kill()
        self.process.wait()
        self.start()
        self.call("POST", "/jobs", {"device": "pi4", "kind": "probe", "request": {}})
        events = self.read_events(last["id"], 1)
        self.assertEqual([event["id"] for event in events], [last["id"] + 1])
        self.assertEqual(events[0]["body"]["state"], "waiting")

    def read_events(self, after, count):
        connection = self.connect()
        connection.request("GET", "/api/v1/events/stream", headers={"Authorization": "Bearer " + self.admin, "Last-Event-ID": str(after)})
        reply = connection.getresponse()
        self.assertEqual(reply.headers.get_content_type(), "text/event-stream")
        events, end = [], time.monotonic() + 30
        while len(events) < count and time.monotonic() < end:
            line = reply.fp.readline().decode()
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))
        connection.close()
        return events


if __name__ == "__main__":
    cli.main()
