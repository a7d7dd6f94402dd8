"""Requests that a proxy and the server might frame in two ways, sent through nginx and through HAProxy: the server sees no second request.

The proxies let nobody add devices, and what is hidden in each request of tests/server/hostile_requests.json adds one.
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import unittest

import cli
from server_test import ServerCase

ODD_OCTETS = [*range(33), 0x7F, 0x80, 0x85, 0xA0, 0xAD, 0xFF]
os.environ["PATH"] += ":/usr/sbin"

NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  client_header_timeout 1s;
  client_body_timeout 1s;
  upstream fleet {{ server 127.0.0.1:{server}; keepalive 4; }}
  server {{
    listen unix:{folder}/proxy.sock;
    location = /api/v1/devices {{ return 403; }}
    location / {{
      proxy_pass http://fleet;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_request_buffering off;
      proxy_ignore_client_abort on;
    }}
  }}
}}
"""

HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 1s
  timeout server 10s
  timeout http-request 1s
frontend all
  bind unix@{folder}/proxy.sock
  http-request deny if {{ path /api/v1/devices }}
  default_backend fleet
backend fleet
  http-reuse always
  server fleet 127.0.0.1:{server}
"""


def hostile_requests():
    """Names, and what is sent, with places for the path, the headers and the hidden request."""
    entries = json.loads((cli.SOURCE / "tests/server/hostile_requests.json").read_text())
    for entry in entries:
        parts = {"start": entry.get("start", "POST <PATH> HTTP/1.1"), "headers": entry["headers"], "body": entry.get("body", "0\r\n\r\n<SMUGGLED>")}
        octets = ODD_OCTETS if "<BYTE>" in "".join(parts.values()) else [None]
        for octet in octets:
            filled = {key: text if octet is None else text.replace("<BYTE>", chr(octet)) for key, text in parts.items()}
            yield entry["name"] + ("" if octet is None else f" ({octet})"), filled


class Proxies(ServerCase):
    def setUp(self):
        super().setUp()
        self.start()
        self.socket = self.folder / "proxy.sock"

    def put_before(self, name, config, *command):
        if not shutil.which(name):
            self.skipTest(f"{name} is not installed; tools/install-packages proxy installs it")
        file = self.folder / f"{name}.conf"
        file.write_text(config.format(folder=self.folder, server=self.port))
        with open(self.folder / "proxy.log", "w", encoding="utf-8") as log:
            proxy = subprocess.Popen([shutil.which(name), *command, file], stdout=log, stderr=log)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.terminate)
        end = time.monotonic() + 30
        while not self.socket.exists():
            self.assertIsNone(proxy.poll(), (self.folder / "proxy.log").read_text())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertIn(b"200 OK", self.send(self.good("GET /api/v1/health")), (self.folder / "proxy.log").read_text())
        self.assertIn(b" 403 ", self.send(self.good("GET /api/v1/devices")).split(b"\r\n")[0])

    def send(self, data):
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(30)
            line.connect(str(self.socket))
            text = b""
            try:
                line.sendall(data)
                line.shutdown(socket.SHUT_WR)
                while piece := line.recv(65536):
                    text += piece
            except ConnectionError:
                pass  # refused while it was being sent
        return text

    @staticmethod
    def good(start):
        return f"{start} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()

    def status_of(self, path):
        while True:
            status = self.call("GET", path)[0]
            if status != 429:  # the server answers so many a second
                return status
            time.sleep(0.2)

    def see_no_second_request(self):
        hidden = json.dumps({"name": "evil"})
        tokens = [self.token("admin") for _ in range(8)]  # one alone would soon be refused for asking too often
        count = 0
        for name, parts in hostile_requests():
            token = tokens[count // 2 % len(tokens)]
            smuggled = (f"POST /api/v1/devices HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
                        f"Content-Length: {len(hidden)}\r\n\r\n{hidden}")
            body = parts["body"].replace("<SMUGGLED>", smuggled)
            for path in ("/api/v1/jobs", "/api/v1/health"):  # one that takes a body, one that does not
                text = (parts["start"].replace("<PATH>", path) + f"\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
                        + parts["headers"].replace("<LENGTH>", str(len(body))) + "\r\n" + body)
                self.send(text.encode("latin-1"))
                count += 1
            answer = self.send(self.good("GET /api/v1/health"))
            self.assertTrue(answer.startswith(b"HTTP/1.1 200"), f"{name}: the next request gets the answer of another: {answer[:300]}")
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1, name)
            self.assertEqual(self.status_of("/devices/evil"), 404, f"{name}: the hidden request was seen")
        self.assertGreater(count, 600)

    def test_nginx(self):
        self.put_before("nginx", NGINX, "-c")
        self.see_no_second_request()

    def test_haproxy(self):
        self.put_before("haproxy", HAPROXY, "-f")
        self.see_no_second_request()


if __name__ == "__main__":
    if not any(map(shutil.which, ("nginx", "haproxy"))):
        print("proxies: skipped: neither nginx nor haproxy is installed; tools/install-packages proxy installs them", file=sys.stderr)
        sys.exit(77)
    cli.main()
