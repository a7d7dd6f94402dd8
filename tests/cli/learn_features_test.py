"""fleetfit learn features."""
import json

import cli

TABLE = """ops,pi,phone,desktop
000000,1,2,3
421233,40,12,9
333333,90,30,14
012340,20,,8
"""


class LearnFeatures(cli.Case):
    def setUp(self):
        super().setUp()
        self.table = self.file("table.csv", TABLE)
        self.output = self.folder / "features.csv"

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def make(self, *arguments):
        result = self.succeed_json("learn", "features", "-o", self.output, *arguments)
        return result, self.output.read_text()

    def refuse_to_make(self, problem, *arguments):
        self.refuse("learn", "features", "-o", self.output, *arguments, naming=problem)

    def test_rows_of_a_table_are_references(self):
        result, text = self.make("--table", self.table, "--space", "nasbench201", "--rows", "1,3")
        self.assertEqual(text, "device,ref:nasbench201@1:421233,ref:nasbench201@1:012340\npi,40,20\nphone,12,\ndesktop,9,8\n")
        self.assertEqual(result, {"devices": ["pi", "phone", "desktop"],
                                  "columns": ["ref:nasbench201@1:421233", "ref:nasbench201@1:012340"],
                                  "missing": 1, "left_out": []})

    def test_designs_and_devices_can_be_named(self):
        _, text = self.make("--table", self.table, "--space", "nasbench201", "--design", "333333", "--design", "000000", "--devices", "phone")
        self.assertEqual(text, "device,ref:nasbench201@1:333333,ref:nasbench201@1:000000\nphone,30,2\n")

    def test_designs_are_chosen_where_none_is_named(self):
        result, _ = self.make("--table", self.table, "--space", "nasbench201", "--references", 2)
        self.assertEqual(len(result["columns"]), 2)
        self.assertNotIn("ref:nasbench201@1:012340", result["columns"])

    def test_probes_sheets_and_files_are_put_together(self):
        probe = self.file("probe.json", json.dumps({"features": {"cores": 4}}))
        sheet = self.file("sheet.csv", "board,soc,mhz\npi,BCM2711,1500\nphone,SDM845,2800\n")
        old = self.file("old.csv", "device,net:resnet18\nphone,80\n")
        result, text = self.make("--probe", f"pi={probe}", "--sheet", sheet, "--sheet-key", "board", "--add", old)
        self.assertEqual(text, "device,net:resnet18,probe:cores,spec:mhz\nphone,80,,2800\npi,,4,1500\n")
        self.assertEqual(result["left_out"], ["soc"])

    def test_two_devices_can_be_probed(self):
        one = self.file("one.json", json.dumps({"features": {"cores": 4}}))
        two = self.file("two.json", json.dumps({"features": {"cores": 8, "l3_bytes": 1024}}))
        _, text = self.make("--probe", f"pi={one}", "--probe", f"desktop={two}")
        self.assertEqual(text, "device,probe:cores,probe:l3_bytes\npi,4,\ndesktop,8,1024\n")

    def test_bad_input_is_one_line(self):
        probe = self.file("probe.json", "{}")
        references = ["--table", self.table, "--space", "nasbench201"]
        self.refuse_to_make("name a table")
        self.refuse_to_make("--table needs --space", "--table", self.table)
        self.refuse_to_make("there is no row 9", *references, "--rows", "1,9")
        self.refuse_to_make("row 1 is named twice", *references, "--rows", "1,1")
        self.refuse_to_make("not by both", *references, "--rows", "1", "--design", "000000")
        self.refuse_to_make("the reference design '999999'", *references, "--design", "999999")
        self.refuse_to_make("only 2 designs", *references, "--references", 10)
        self.refuse_to_make("DEVICE=FILE", "--probe", probe)
        self.refuse_to_make("probe.json: the field 'features' is missing", "--probe", f"pi={probe}")
        self.refuse_to_make("two probes of the device 'pi'", "--probe", f"pi={self.probe()}", "--probe", f"pi={self.probe()}")
        self.refuse_to_make("bad.csv:2:3", "--add", self.file("bad.csv", "device,net:a\nx,-1\n"))
        self.assertFalse(self.output.exists())

    def probe(self):
        return self.file("good.json", json.dumps({"features": {"cores": 4}}))


cli.main()
