// Checks how much memory a choice without measuring takes at most. The peak is that of the process,
// so this test has a program of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/status_testing.h"
#include "compiler/dag/text.h"
#include "device/calibration.h"
#include "search/choice/heuristic_choice.h"

namespace kiln::search {
namespace {

double PeakMiB() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib / 1024;
  }
  return 0;
}

// Each state of a chain of a hundred sums has two hundred stages.
TEST(UnmeasuredMemory, ALargeComputationTakesSomeHundredMiB) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have allocators of their own";
#endif
  std::string text = "input X: float32[64]\nY0[i: 64] = sum(k: 64) X[i] * X[k]\n";
  for (int i = 1; i < 100; ++i)
    text += fmt::format("Y{0}[i: 64] = sum(k: 64) Y{1}[i] * Y{1}[k]\n", i, i - 1);
  ASSERT_OK_AND_ASSIGN(const auto dag, dag::ParseDag(text));
  const target::Target target = *target::ParseTarget("llvm");
  const Task task(dag, target, target::DefaultHardware(target, /*host_cores=*/4), "[]");
  ASSERT_OK(ChooseHeuristic(task, device::CalibrationOf(task.device).row, kHeuristicSeed));
  EXPECT_GT(PeakMiB(), 0);
  EXPECT_LT(PeakMiB(), 600);
}

}  // namespace
}  // namespace kiln::search
