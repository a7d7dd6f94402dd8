"""What holds for every verb: help, version, refusals of what is no usage."""
import re

import cli

VERBS = [
    ["model", "inspect"],
    ["model", "convert"],
    ["model", "run"],
    ["model", "check"],
    ["model", "zoo"],
    ["device", "add"],
    ["device", "list"],
    ["device", "show"],
    ["device", "remove"],
    ["measure", "export"],
    ["infer", "tune"],
    ["space", "list"],
    ["space", "show"],
    ["space", "sample"],
    ["bundle", "show"],
    ["bundle", "verify"],
    ["bundle", "sign"],
    ["bundle", "extract"],
    ["bundle", "join"],
    ["bundle", "draft"],
    ["study", "list"],
    ["study", "show"],
    ["study", "best"],
    ["study", "export"],
    ["study", "report"],
    ["study", "create"],
    ["study", "ask"],
    ["study", "tell"],
    ["study", "serve"],
    ["study", "remove"],
    ["store", "copy"],
    ["token", "create"],
    ["token", "list"],
    ["token", "revoke"],
]


class Version(cli.Case):
    def test_is_the_one_that_cmake_states(self):
        stated = re.search(r"project\(fleetfit VERSION ([0-9.]+)", (cli.SOURCE / "CMakeLists.txt").read_text())[1]
        self.assertRegex(self.succeed("--version").stdout, rf"\A[^\n]*\b{re.escape(stated)}\n\Z")


class Help(cli.Case):
    def test_of_the_program_names_every_group_of_verbs(self):
        text = self.succeed("--help").stdout
        for verb in {verb[0] for verb in VERBS}:
            self.assertIn(verb, text)

    def test_of_a_group_names_its_verbs(self):
        for group, verb in VERBS:
            with self.subTest(group=group, verb=verb):
                self.assertIn(verb, self.succeed(group, "--help").stdout)

    def test_of_every_verb_shows_an_example(self):
        for verb in VERBS + [["measure"]]:
            with self.subTest(verb=verb):
                text = self.succeed(*verb, "--help").stdout
                self.assertIn("Example", text)
                self.assertIn("fleetfit " + " ".join(verb), text)


    def test_does_not_show_what_is_not_for_people(self):
        self.assertNotIn("runtime ", self.succeed("--help").stdout.split("Subcommands:")[1])


class Usage(cli.Case):
    def test_refuses_an_unknown_verb(self):
        self.refuse("modle", naming="modle")
        self.refuse("model", "inspekt", naming="inspekt")

    def test_refuses_an_unknown_option(self):
        self.refuse("model", "zoo", "--colour", naming="--colour")

    def test_refuses_no_verb_at_all(self):
        self.refuse()
        self.refuse("model")
        self.refuse("device")
        self.refuse("measure")

    def test_refuses_a_missing_argument(self):
        self.refuse("model", "inspect", naming="FILE")

    def test_refuses_a_number_that_is_none(self):
        self.refuse("--threads", "many", "model", "zoo", naming="--threads")
        self.refuse("--seed", "many", "model", "zoo", naming="--seed")


if __name__ == "__main__":
    cli.main()
