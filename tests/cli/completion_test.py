"""fleetfit completion bash|zsh, sourced by these shells; and the manual's page."""
import shutil
import subprocess

import cli


class Shell(cli.Case):
    """Puts the shell's question by hand, as no terminal is here to press a key on."""

    def ask(self, command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, encoding="utf-8", timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def make_files(self):
        (self.folder / "model a.onnx").touch()
        (self.folder / "models").mkdir()


class Bash(Shell):
    def complete(self, *words):
        """What bash offers for the last of these words."""
        script = self.folder / "completion.bash"
        script.write_text(self.succeed("completion", "bash").stdout, encoding="utf-8")
        return self.ask(["bash", "--norc", "-c", 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fleetfit; printf "%s\\n" "${COMPREPLY[@]}"',
                         script, "fleetfit", *words])

    def test_offers_verbs(self):
        self.assertEqual(self.complete("mea"), ["measure"])
        self.assertEqual(self.complete("model", "con"), ["convert"])
        self.assertEqual(set(self.complete("device", "")), {"add", "list", "show", "remove", "probe"})
        self.assertNotIn("runtime", self.complete(""))  # help does not list it either

    def test_offers_flags_of_the_verb_and_of_every_verb(self):
        self.assertEqual(self.complete("measure", "--max"), ["--max-time"])
        self.assertEqual(self.complete("model", "zoo", "--se"), ["--seed"])
        self.assertEqual(self.complete("--json", "space", "sample", "--sam"), ["--samples"])
        self.assertEqual(self.complete("model", "--max"), [""])

    def test_offers_files_as_they_are(self):
        self.make_files()
        self.assertEqual(sorted(self.complete("measure", "model")), ["model a.onnx", "models"])
        self.assertEqual(self.complete("train", "model a"), ["model a.onnx"])
        self.assertEqual(self.complete("predict", "train", "-o", "model a"), ["model a.onnx"])

    def test_offers_what_stands_behind_a_flag(self):
        self.assertEqual(self.complete("measure", "--space", "nas"), ["nasbench201"])
        self.assertEqual(self.complete("device", "add", "x", "--precision", ""), ["fp32", "int8"])
        self.make_files()
        self.assertEqual(self.complete("measure", "--samples", "model"), [""])

    def test_is_registered(self):
        script = self.folder / "completion.bash"
        script.write_text(self.succeed("completion", "bash").stdout, encoding="utf-8")
        self.assertEqual(self.ask(["bash", "--norc", "-c", 'source "$0"; complete -p fleetfit', script]), ["complete -F _fleetfit fleetfit"])


class Zsh(Shell):
    def setUp(self):
        super().setUp()
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        self.script = self.folder / "completion.zsh"
        self.script.write_text(self.succeed("completion", "zsh").stdout, encoding="utf-8")

    def complete(self, *words):
        """What the script hands to zsh's own functions for the last of these words."""
        return self.ask(["zsh", "-f", "-c", """
            compdef() { print "registered $2" }
            _describe() { print -l -- "${(@P)@[-1]}" }
            _files() { print FILES }
            source "$1"; shift
            words=("$@"); CURRENT=$#words
            _fleetfit""", "zsh", self.script, "fleetfit", *words])

    def test_offers_verbs_with_what_they_do(self):
        offered = self.complete("")
        self.assertEqual(offered[0], "registered fleetfit")
        self.assertIn("measure:Measure how long models take on devices", offered)
        self.assertIn("convert:", "\n".join(self.complete("model", "")))

    def test_offers_flags_and_files(self):
        flags = "\n".join(self.complete("measure", "-"))
        self.assertIn("\n--max-time:", flags)
        self.assertIn("\n--json:", flags)
        self.assertNotIn("FILES", flags)
        self.assertIn("FILES", self.complete("measure", ""))
        self.assertIn("nasbench201", self.complete("measure", "--space", ""))
        self.assertEqual(self.complete("measure", "--samples", "")[1:], [])

    def test_completes_in_a_terminal(self):
        """Through zsh's own completion system, in a terminal of zsh's making."""
        (self.folder / "_fleetfit").write_text(self.script.read_text(encoding="utf-8"), encoding="utf-8")
        offered = self.ask(["zsh", "-f", "-c", r"""
            zmodload zsh/zpty
            zpty shell 'zsh -f -i'
            zpty -w shell "PS1=; fpath=($1 \$fpath); autoload -U compinit; compinit -u -d $1/dump; print READY"
            zpty -r -m shell line '*READY*READY*'
            zpty -w -n shell $'fleetfit meas\t--max-t\t'
            zpty -r -m shell line '*--max-time*'
            print -r -- "$line"
            zpty -d shell""", "zsh", self.folder])
        self.assertIn("measure", " ".join(offered))


class ManPage(cli.Case):
    def setUp(self):
        super().setUp()
        self.page = self.folder / "fleetfit.1"
        self.page.write_text(self.succeed("man-page", "--date", "2026-01-31").stdout, encoding="utf-8")

    def test_has_every_verb_with_its_flags(self):
        text = self.page.read_text(encoding="utf-8")
        self.assertIn(".SS fleetfit predict train\n", text)
        self.assertIn("\\fB\\-\\-budget\\-ms\\fR", text)
        self.assertNotIn("man\\-page", text)

    def check(self, program, *flags):
        if not shutil.which(program):
            self.skipTest(f"{program} is not installed")
        done = subprocess.run([program, *flags, self.page], capture_output=True, encoding="utf-8", timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_is_clean_to_groff(self):
        self.check("groff", "-man", "-Tutf8", "-K", "utf8", "-ww", "-z")

    def test_is_clean_to_mandoc(self):
        self.check("mandoc", "-T", "lint", "-W", "warning")


if __name__ == "__main__":
    cli.main()
