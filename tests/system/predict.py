"""`tonari bench fit` and `tonari predict`: what they measure and predict, and what they refuse."""

import copy
import json
import os
import subprocess
import unittest

import jsonschema

from harness.bench import BenchTest, SCHEMA, TONARI

PARAMETERS_SCHEMA = os.path.join(os.path.dirname(SCHEMA), "parameters.schema.json")


def costs(latency):
    return {"eager_bytes_max": 16384, "residual_error": 0.01,
            "sizes": [{"bytes": size, "latency_us": latency + size * 1e-3, "send_us": 1, "receive_us": 2, "push_us": 0,
                       "gap_us": 1 + size * 1e-3, "half_round_trip_us": latency + size * 1e-3 + 3,
                       "exchange_us": latency + size * 1e-3 + 3}
                      for size in (8, 4096, 65536)]}


MADE_UP = {"schema": "tonari parameters", "version": 1, "machine": {}, "unfit": [], "network": "tcp", "quick": True,
           "in_host": costs(0.5), "between_hosts": costs(10),
           "local": {"copy_us_per_byte": 1e-4, "fold_us_per_byte": 2e-4, "switch_us": 8,
                      "lu_gflops": 2.0, "himeno_mflops": 2000.0}}


class PredictTest(BenchTest):
    def write(self, text, name="parameters.json"):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))
        return path

    def predict(self, *arguments):
        status, output, error = self.run_job("predict", "--parameters", self.write(MADE_UP), "--json", *arguments)
        self.assertEqual((status, error), (0, ""))
        return json.loads(output)

    def error_of(self, *arguments):
        status, output, error = self.run_job("predict", *arguments)
        self.assertEqual((status, output), (2, ""), error)
        self.assertEqual(len(error.splitlines()), 1, error)
        return error


class Predictions(PredictTest):
    def test_each_operation_has_time_rounds_and_messages(self):
        report = self.predict("--ranks", "64")
        self.assertEqual([one["operation"] for one in report["predictions"]],
                         ["barrier", "broadcast", "all-reduce", "all-to-all"])
        barrier, broadcast, _, exchange = report["predictions"]
        self.assertEqual((barrier["rounds"], barrier["messages"]), (6, 6 * 64))
        self.assertAlmostEqual(barrier["time_us"], 6 * 13.008, places=2)
        self.assertEqual(broadcast["messages"], 63)
        self.assertEqual(exchange["messages"], 64 * 63)
        self.assertGreater(min(one["time_us"] for one in report["predictions"]), 0)

    def test_ranks_of_a_host_send_few_messages_to_other_hosts(self):
        report = self.predict("--ranks", "64", "--ranks-per-host", "16", "--operations", "broadcast,barrier")
        self.assertEqual(report["hosts"], 4)
        broadcast, barrier = report["predictions"]
        self.assertEqual(broadcast["messages_between_hosts"], 3)
        self.assertEqual(barrier["messages_between_hosts"], 4 * 2)

    def test_the_same_prediction_is_printed_again(self):
        arguments = ("--ranks", "1000", "--ranks-per-host", "7", "--bytes", "100K")
        self.assertEqual(self.predict(*arguments), self.predict(*arguments))

    def test_memory_grows_with_the_ranks_of_the_job(self):
        def total(ranks):
            return sum(part["bytes"] for part in self.predict("--ranks", ranks)["memory_of_a_rank"])
        per_rank = (total("1001") - total("1")) / 1000
        self.assertGreater(per_rank, 200_000)
        self.assertLess(per_rank, 400_000)

    def test_an_all_to_all_of_many_ranks_is_a_closed_form(self):
        exchange, = self.predict("--ranks", "100000", "--operations", "all-to-all")["predictions"]
        self.assertEqual((exchange["method"], exchange["messages"]), ("closed form", 100000 * 99999))

    def test_text_has_the_same_numbers(self):
        status, output, error = self.run_job("predict", "--parameters", self.write(MADE_UP), "-n", "8")
        self.assertEqual((status, error), (0, ""))
        self.assertRegex(output, r"(?m)^8 ranks on 8 hosts$")
        self.assertRegex(output, r"(?m)^barrier +0 +39\.0 +3 +24 +24$")
        self.assertIn("memory of a rank", output)

    def test_standard_output_that_is_full_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TONARI, "predict", "--parameters", self.write(MADE_UP), "-n", "8"], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("No space left on device", done.stderr)


class Refusals(PredictTest):
    def test_missing_parameters_are_explained(self):
        self.assertIn("`tonari bench fit -o parameters.json` measures them", self.error_of("--ranks", "8"))

    def test_missing_ranks_are_explained(self):
        self.assertIn("--ranks is missing", self.error_of("--parameters", self.write(MADE_UP)))

    def test_wrong_numbers_are_refused_with_their_range(self):
        path = self.write(MADE_UP)
        for option in ("--ranks", "--ranks-per-host"):
            for number in ("0", "-1", "x", "1.5", "4194305", "99999999999999999999"):
                with self.subTest(option=option, number=number):
                    self.assertIn("must be a number of ranks from 1 to 4194304",
                                  self.error_of("--parameters", path, option, number))
        for size in ("0", "-8", "x", "512M", "99999999999999999999"):
            with self.subTest(size=size):
                self.assertIn("--bytes", self.error_of("--parameters", path, "--ranks", "8", "--bytes", size))

    def test_unknown_operations_are_refused_with_a_list(self):
        error = self.error_of("--parameters", self.write(MADE_UP), "--ranks", "8", "--operations", "barrier,gather")
        self.assertIn("barrier,broadcast,all-reduce,all-to-all", error)

    def test_files_that_hold_no_parameters_are_refused(self):
        for text in ("", "{", "[]", "{}", "null", '"tonari parameters"', '{"schema": "other"}'):
            with self.subTest(text=text):
                self.assertIn("holds no parameters", self.error_of("--parameters", self.write(text), "--ranks", "8"))
        self.assertIn("cannot read", self.error_of("--parameters", "/nonexistent/file", "--ranks", "8"))
        self.assertIn("cannot read", self.error_of("--parameters", self.folder, "--ranks", "8"))

    def test_parameters_that_are_incomplete_or_make_no_sense_are_refused(self):
        def broken(change):
            made = copy.deepcopy(MADE_UP)
            change(made)
            return made
        for change, said in (
                (lambda made: made.pop("between_hosts"), "between_hosts"),
                (lambda made: made["in_host"].pop("sizes"), "sizes"),
                (lambda made: made["in_host"]["sizes"].clear(), "sizes: there are none"),
                (lambda made: made["in_host"]["sizes"].reverse(), "do not ascend"),
                (lambda made: made["in_host"]["sizes"][1].update(bytes=8), "do not ascend"),
                (lambda made: made["in_host"]["sizes"][0].pop("gap_us"), "gap_us"),
                (lambda made: made["in_host"]["sizes"][0].update(gap_us=-1), "gap_us"),
                (lambda made: made["in_host"]["sizes"][0].update(gap_us="1"), "is not complete"),
                (lambda made: made["in_host"]["sizes"][0].update(bytes=-8), "bytes"),
                (lambda made: made["local"].update(lu_gflops=0), "lu_gflops"),
                (lambda made: made.update(version=2), "version 2, not 1")):
            with self.subTest(said=said):
                error = self.error_of("--parameters", self.write(broken(change)), "--ranks", "8")
                self.assertIn(said, error)
                self.assertIn("run `tonari bench fit -o FILE` again", error)


class Fitting(PredictTest):
    def test_measured_parameters_can_be_used_and_checked(self):
        path = os.path.join(self.folder, "fitted.json")
        status, output, error = self.run_job("bench", "fit", "--quick", "--network", "tcp", "-o", path)
        self.assertEqual(status, 0, error)
        self.assertIn("between hosts, us", output)
        with open(path) as file:
            fitted = json.load(file)
        with open(PARAMETERS_SCHEMA) as file:
            schema = json.load(file)
        jsonschema.validate(fitted, schema)
        jsonschema.validate(MADE_UP, schema)
        for place in ("in_host", "between_hosts"):
            for one in fitted[place]["sizes"]:
                self.assertAlmostEqual(one["send_us"] + one["latency_us"] + one["receive_us"],
                                       one["half_round_trip_us"])
        status, output, error = self.run_job("predict", "--parameters", path, "--check", "--quick", "--json",
                                             "--network", "tcp")
        self.assertEqual(status, 0, error)
        checked = json.loads(output)["checked"]
        self.assertEqual({(one["operation"], one["ranks"]) for one in checked},
                         {(name, ranks) for name in ("barrier", "broadcast", "all-reduce") for ranks in (2, 3)})
        self.assertGreater(min(one["predicted_us"] for one in checked), 0)
        self.assertGreater(min(one["measured_us"] for one in checked), 0)

    def test_a_file_that_cannot_be_written_is_refused_before_measuring(self):
        error = self.refused("fit", "-o", "/nonexistent/folder/file")
        self.assertIn("there is no folder /nonexistent/folder", error)

    def test_a_full_disk_is_an_error(self):
        status, _, error = self.run_job("bench", "fit", "--quick", "-o", "/dev/full")
        self.assertEqual(status, 2)
        self.assertIn("No space left on device", error.splitlines()[-1])

    def test_an_unknown_network_is_refused(self):
        self.assertIn("--network: must be any or tcp or rc or ud", self.refused("fit", "--network", "smoke"))


if __name__ == "__main__":
    unittest.main()
