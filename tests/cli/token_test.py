"""Tokens for a fleet's server: made, listed, revoked; secrets are shown once and kept nowhere."""
import datetime
import hashlib
import os
import sqlite3
import stat

import cli


class TokenCase(cli.Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "store.db"

    def token(self, *args):
        return self.succeed("--store", f"sqlite:{self.file}", "token", *args)

    def token_json(self, *args):
        return self.succeed_json("--store", f"sqlite:{self.file}", "token", *args)

    def refuse_token(self, *args, naming):
        self.refuse("--store", f"sqlite:{self.file}", "token", *args, naming=naming)

    def tokens(self):
        return self.token_json("list")["tokens"]

    def rows(self, sql):
        with sqlite3.connect(self.file) as database:
            return database.execute(sql).fetchall()


class Create(TokenCase):
    def test_prints_the_secret_alone_and_keeps_its_hash_alone(self):
        secret = self.token("create", "--role", "admin", "--name", "me").stdout
        self.assertRegex(secret, r"\Aff_[0-9a-f]{64}\n\Z")
        hashes = self.rows("SELECT hash FROM tokens")
        self.assertEqual(hashes, [(hashlib.sha256(secret.strip().encode()).hexdigest(),)])
        for file in self.folder.iterdir():
            self.assertNotIn(secret.strip().encode(), file.read_bytes(), file)

    def test_makes_another_secret_each_time(self):
        secrets = {self.token("create").stdout for _ in range(5)}
        self.assertEqual(len(secrets), 5)

    def test_says_what_it_has_made(self):
        made = self.token_json("create", "--role", "agent", "--device", "pi4", "--expires", "30d")
        self.assertEqual((made["id"], made["role"], made["device"], made["state"]), (1, "agent", "pi4", "valid"))
        self.assertTrue(made["token"].startswith("ff_"))
        created, expires = (datetime.datetime.fromisoformat(made[key].replace("Z", "+00:00")) for key in ("created", "expires"))
        self.assertEqual(expires - created, datetime.timedelta(days=30))

    def test_says_how_many_devices_an_agents_token_may_register(self):
        self.assertEqual(self.token_json("create", "--role", "agent")["devices"], 100)
        self.assertEqual(self.token_json("create", "--role", "agent", "--devices", "500")["devices"], 500)
        self.assertNotIn("devices", self.token_json("create", "--role", "agent", "--device", "pi4"))
        self.refuse_token("create", "--role", "viewer", "--devices", "5", naming="devices")
        self.refuse_token("create", "--role", "agent", "--device", "pi4", "--devices", "5", naming="devices")
        self.refuse_token("create", "--role", "agent", "--devices", "-1", naming="devices")
        self.assertIn("up to 500", self.token("list").stdout)

    def test_writes_the_secret_for_its_owner_alone(self):
        os.umask(0)
        output = self.folder / "pi4.token"
        self.assertEqual(self.token("create", "--role", "agent", "--output", output).stdout, "")
        self.assertEqual(stat.S_IMODE(output.stat().st_mode), 0o600)
        self.assertRegex(output.read_text(), r"\Aff_[0-9a-f]{64}\n\Z")
        self.assertNotIn("token", self.token_json("create", "--output", self.folder / "b.token"))

    def test_leaves_a_file_that_is_there_alone(self):
        output = self.folder / "precious"
        output.write_text("mine")
        self.refuse_token("create", "--output", output, naming="precious")
        self.assertEqual(output.read_text(), "mine")
        self.assertEqual(self.tokens(), [])

    def test_leaves_no_file_where_there_is_no_token(self):
        self.refuse_token("create", "--role", "king", "--output", self.folder / "a.token", naming="'king' is no role")
        self.assertFalse((self.folder / "a.token").exists())

    def test_refuses_what_makes_no_sense(self):
        for lifetime in ("30", "d", "30x", "1.5d", "30dd", "-3d", "0h", "", " 3d", "99999999999999999999d", "2000000w"):
            if lifetime:
                self.refuse_token("create", "--expires=" + lifetime, naming="expires: '" + lifetime)
        self.refuse_token("create", "--role", "agent", "--device", "../etc", naming="device")
        self.refuse_token("create", "--role", "admin", "--device", "pi4", naming="device")
        self.assertEqual(self.tokens(), [])


class List(TokenCase):
    def test_tells_tokens_that_are_valid_from_others_without_secrets(self):
        secrets = [self.token("create", "--role", role, "--name", f"my {role}").stdout.strip()
                   for role in ("admin", "viewer", "agent")]
        self.token("revoke", "2")
        self.rows("UPDATE tokens SET expires = 1000 WHERE id = 3")
        self.assertEqual([(t["id"], t["name"], t["state"]) for t in self.tokens()],
                         [(1, "my admin", "valid"), (2, "my viewer", "revoked"), (3, "my agent", "expired")])
        text = self.token("list").stdout + self.token("list", "--json").stdout
        self.assertIn("my viewer", text)
        for secret in secrets:
            self.assertNotIn(secret, text)
            self.assertNotIn(hashlib.sha256(secret.encode()).hexdigest(), text)

    def test_of_no_store_is_empty_and_makes_none(self):
        self.assertEqual(self.tokens(), [])
        self.assertFalse(self.file.exists())


class Revoke(TokenCase):
    def test_works_once(self):
        self.token("create")
        self.assertEqual(self.token("revoke", "1").stdout, "")
        for number in ("1", "7"):
            outcome = cli.run("--store", f"sqlite:{self.file}", "token", "revoke", number)
            self.assertNotEqual(outcome.status, 0)
            self.assertIn(f"there is no token {number} that is not revoked yet", outcome.stderr)
        self.refuse_token("revoke", "one", naming="ID")

    def test_is_noted_with_its_making(self):
        self.token("create", "--role", "admin", "--name", "me")
        self.token("revoke", "1")
        self.assertEqual(self.rows("SELECT token, name, action, detail FROM audit ORDER BY id"),
                         [(0, "command line", "token.create", "1 admin me"), (0, "command line", "token.revoke", "1")])


if __name__ == "__main__":
    cli.main()
