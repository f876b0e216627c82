"""Tests of layers.py itself, on made-up trees."""
import os
import tempfile
import unittest

import layers


class LayersTest(unittest.TestCase):
    def check(self, files):
        """The violations in a tree of {path: text}."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return list(layers.violations(root))

    def test_down_is_allowed(self):
        self.assertEqual(
            self.check({
                "base/log.h": "#include <vector>\n#include <spdlog/spdlog.h>\n",
                "compiler/ir/expr.h": '#include "base/log.h"\n#include "absl/status/status.h"\n',
                "compiler/dag/ops/conv.cc": '#include "compiler/dag/ops/conv.h"\n#include "compiler/ir/expr.h"\n',
                "compiler/codegen/llvm/emit.cc": '#include "llvm/IR/Module.h"\n#include "proto/cpu_abi.h"\n',
                "store/wire/rows.cc": '#include "proto/trial.pb.h"\n#include "store/store.h"\n',
                "client/cli/main.cc": '#include "tracker/daemon.h"\n#include "compiler/codegen/emit.h"\n',
                "tests/e2e/all.cc": '#include "tracker/registry.h"\n#include "runner/child.h"\n',
            }), [])

    def test_up_is_refused(self):
        for path, included in [
            ("base/log.h", "proto/trial.pb.h"),
            ("compiler/ir/expr.h", "compiler/dag/dag.h"),
            ("compiler/lower/lower.cc", "compiler/features/features.h"),
            ("compiler/features/features.cc", "compiler/codegen/emit.h"),
            ("compiler/codegen/emit.cc", "compiler/features/features.h"),
            ("compiler/codegen/emit.cc", "proto/trial.pb.h"),
            ("costmodel/model.cc", "compiler/ir/expr.h"),
            ("store/store.cc", "compiler/schedule/step.h"),
            ("store/store.cc", "proto/trial.pb.h"),
            ("store/store.cc", "store/wire/rows.h"),
            ("runner/child.cc", "store/wire/rows.h"),
            ("search/policies/policy.cc", "store/store.h"),
            ("search/policies/policy.cc", "proto/trial.pb.h"),
            ("search/policies/policy.cc", "compiler/codegen/emit.h"),
            ("compiler/codegen/cuda/emit.cc", "compiler/codegen/llvm/emit.h"),
            ("proto/limits.h", "base/log.h"),
            ("rpc/channel.cc", "tracker/daemon.h"),
            ("search/space/sketch.cc", "search/sampling/sample.h"),
            ("search/sampling/sample.cc", "search/evolution/mutation.h"),
            ("search/evolution/mutation.cc", "search/policies/policy.h"),
            ("search/policies/policy.cc", "search/tuning/tune.h"),
            ("client/client.cc", "client/view/json.h"),
            ("client/view/json.cc", "client/check/doctor.h"),
            ("client/check/doctor.cc", "client/cli/command.h"),
            ("client/jobs/job_spec.cc", "client/cli/command.h"),
            ("client/jobs/job_spec.cc", "client/view/json.h"),
            ("tracker/registry.cc", "scheduler/jobs/jobs.h"),
            ("builder/pool.cc", "runner/child.h"),
            ("runner/child.cc", "compiler/ir/type.h"),
            ("runner/child.cc", "tracker/daemon.h"),
            ("scheduler/jobs/jobs.cc", "compiler/codegen/emit.h"),
            ("client/cli/main.cc", "tracker/registry.h"),
            ("client/cli/main.cc", "scheduler/daemon_options.h"),
        ]:
            with self.subTest(path=path, included=included):
                for style in ['#include "{}"', "  #  include <{}> // why"]:
                    found = self.check({path: "// head\n" + style.format(included) + "\n"})
                    self.assertEqual(len(found), 1, found)
                    self.assertTrue(found[0].startswith(f"{path}:2: includes {included}: "), found)

    def test_a_test_obeys_too(self):
        self.assertEqual(len(self.check({"store/store_test.cc": '#include "search/policies/policy.h"\n'})), 1)
        self.assertEqual(self.check({"store/store_test.cc": '#include "store/store.h"\n'}), [])

    def test_libraries_stay_where_they_belong(self):
        for path, included in [
            ("search/policies/policy.cc", "grpcpp/grpcpp.h"),
            ("runner/child.cc", "llvm/IR/Module.h"),
            ("scheduler/jobs/jobs.cc", "llvm-c/Core.h"),
            ("scheduler/jobs/jobs.cc", "sqlite3.h"),
            ("client/cli/main.cc", "spdlog/spdlog.h"),
            ("client/jobs/job_spec.cc", "CLI/CLI.hpp"),
            ("store/store.cc", "google/protobuf/message.h"),
        ]:
            with self.subTest(path=path, included=included):
                self.assertEqual(len(self.check({path: f"#include <{included}>\n"})), 1)
                test = path.replace(".cc", "_test.cc")
                self.assertEqual(self.check({test: f"#include <{included}>\n"}), [])

    def test_an_unknown_folder_is_refused(self):
        for path in ["util/strings.h", "compiler/passes/pass.cc", "main.cc"]:
            with self.subTest(path=path):
                self.assertEqual(
                    self.check({path: ""}),
                    [f"{path}: this folder is not in the layer table (tests/layers/layers.py)"])
        found = self.check({"base/a.cc": '#include "util/strings.h"\n', "util/strings.h": ""})
        self.assertEqual(len(found), 2, found)

    def test_an_include_without_folder_is_refused(self):
        found = self.check({"base/a.cc": '#include "a.h"\n', "base/a.h": ""})
        self.assertEqual(found, ["base/a.cc:1: includes a.h: write the path from the top folder"])

    def test_a_way_around_by_dots_is_refused(self):
        self.assertEqual(len(self.check({"base/a.cc": '#include "base/../store/store.h"\n'})), 1)

    def test_what_is_not_source_is_skipped(self):
        self.assertEqual(
            self.check({
                "bazel-out/x.cc": "",
                ".git/x.cc": "",
                "docs/x.cc": "",
                "base/x.md": '#include "store/store.h"\n',
            }), [])

    def test_the_table_points_down(self):
        """Each layer includes only what is listed before it, so no two can include each other."""
        before = []
        for layer, allowed in layers.TABLE.items():
            for entry in allowed:
                known = entry == "*" or any(b == entry or b.startswith(entry + "/") for b in before)
                self.assertTrue(known or layers.layer_of(entry) in before, f"{layer} -> {entry}")
            before.append(layer)


if __name__ == "__main__":
    unittest.main()
