// Tests properties of the features of any program, over random schedules of the whole operator
// library.
#include "compiler/features/features.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "device/device_model.h"
#include "search/policies/random_policy.h"

namespace kiln {
namespace {

constexpr uint64_t kSeed = 11;
// Number of states of an operator on a target.
constexpr int kStates = 6;

class FeaturesTest : public testing::TestWithParam<bool> {
 protected:
  target::Target Target() const {
    return *target::ParseTarget(GetParam() ? "cuda -arch=sm_90" : "llvm -mcpu=skylake-avx512");
  }
  FloatMatrix Extract(const ir::Program& program) const {
    device::DeviceModel device;
    if (GetParam()) device = device::FilledGpu(device, 90);
    return features::ExtractFeatures(program, Target(), {}, device);
  }

  // Calls check(name of the case, program) for random candidates of a search, and on a CPU also for
  // schedules that no search makes.
  template <typename Check>
  void ForEachProgram(Check check) const {
    int programs = 0;
    for (const dag::OpCase& c : dag::SmallOpCases()) {
      const dag::DagPtr dag = c.Build();
      std::vector<schedule::State> states;
      const search::Task task(dag, Target(), {}, "[]");
      search::RandomPolicy policy(task, search::Parameters(), kSeed);
      if (auto candidates = policy.Propose(kStates); candidates.ok()) {
        for (const search::Candidate& candidate : *candidates)
          states.push_back(*schedule::Replay(dag, candidate.steps));
      }
      for (uint64_t i = 0; !GetParam() && i < kStates; ++i)
        states.push_back(schedule::RandomSchedule(dag, kSeed + i, 10));
      for (const schedule::State& state : states) {
        const auto program = lower::Lower(state, {.gpu = GetParam()});
        if (!program.ok()) continue;
        ++programs;
        check(c.Name() + " " + schedule::PrintSteps(state.steps()), *program);
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(programs, 500);
  }

  // Returns "row 2 num_loops: 3 and 4"; "": the matrices are equal.
  static std::string Difference(const FloatMatrix& a, const FloatMatrix& b) {
    if (a.rows() != b.rows()) return fmt::format("{} rows and {}", a.rows(), b.rows());
    std::string text;
    for (int r = 0; r < a.rows(); ++r) {
      for (size_t c = 0; c < a.row(r).size(); ++c) {
        if (a.row(r)[c] == b.row(r)[c]) continue;
        text += fmt::format("row {} {}: {} and {}\n", r, features::FeatureNames()[c], a.row(r)[c],
                            b.row(r)[c]);
      }
    }
    return text;
  }

  static int CountStores(ir::Stmt stmt) {
    if (stmt->kind == ir::StmtKind::kStore) return 1;
    int stores = 0;
    for (ir::Stmt child : stmt->children()) stores += CountStores(child);
    return stores;
  }
};

TEST_P(FeaturesTest, ThereIsOneFiniteRowForEachStore) {
  ForEachProgram([&](const std::string& name, const ir::Program& program) {
    int stores = 0;
    for (const ir::Kernel& kernel : program.kernels) stores += CountStores(kernel.body);
    const FloatMatrix rows = Extract(program);
    EXPECT_EQ(rows.rows(), stores) << name;
    for (float value : rows.values()) ASSERT_TRUE(std::isfinite(value)) << name;
  });
}

// At most one of a group of features ("B0.acc_type_kRead", "B0.acc_type_kWrite", ...) is set, to 1.
TEST_P(FeaturesTest, TypesAreOneHot) {
  std::map<std::string, std::vector<int>> groups;
  const auto names = features::FeatureNames();
  for (int i = 0; i < static_cast<int>(names.size()); ++i) {
    if (const size_t at = names[static_cast<size_t>(i)].find("_type_k"); at != std::string::npos)
      groups[std::string(names[static_cast<size_t>(i)].substr(0, at))].push_back(i);
  }
  ASSERT_EQ(groups.size(), 3u + 2 * 5) << "vec, unroll, parallel; access and reuse of five buffers";
  ForEachProgram([&](const std::string& name, const ir::Program& program) {
    const FloatMatrix rows = Extract(program);
    for (int r = 0; r < rows.rows(); ++r) {
      for (const auto& [group, columns] : groups) {
        float sum = 0;
        for (int column : columns) {
          const float value = rows.row(r)[static_cast<size_t>(column)];
          ASSERT_TRUE(value == 0 || value == 1) << name << " " << group << " " << value;
          sum += value;
        }
        ASSERT_LE(sum, 1) << name << " " << group;
      }
    }
  });
}

TEST_P(FeaturesTest, NamesDoNotMatter) {
  ForEachProgram([&](const std::string& name, const ir::Program& program) {
    ir::Program renamed = program;
    for (size_t i = 0; i < renamed.vars.size(); ++i) renamed.vars[i].name = fmt::format("v{}", i);
    for (size_t i = 0; i < renamed.buffers.size(); ++i)
      renamed.buffers[i].name = fmt::format("b{}", renamed.buffers.size() - i);
    for (size_t i = 0; i < renamed.stages.size(); ++i)
      renamed.stages[i].name = fmt::format("s{}", renamed.stages.size() - i);
    for (ir::Kernel& kernel : renamed.kernels) kernel.name += "_too";
    ASSERT_EQ(Difference(Extract(renamed), Extract(program)), "") << name;
  });
}

// Only the text of a program counts for its features, not the order of nodes in a pool or the
// numbers of variables.
TEST_P(FeaturesTest, WhatIsPrintedAndParsedHasTheSame) {
  ForEachProgram([&](const std::string& name, const ir::Program& program) {
    ASSERT_OK_AND_ASSIGN(const ir::Program parsed, ir::ParseProgram(ir::ProgramText(program)));
    ASSERT_EQ(Difference(Extract(parsed), Extract(program)), "") << name << "\n"
                                                                 << ir::ProgramText(program);
  });
}

INSTANTIATE_TEST_SUITE_P(Targets, FeaturesTest, testing::Bool(), [](const auto& target) {
  return std::string(target.param ? "Gpu" : "Cpu");
});

}  // namespace
}  // namespace kiln
