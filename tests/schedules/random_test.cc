// Tests that random legal schedules over the operator library, compiled by LLVM, compute what the
// oracle computes.
//
// KILN_SEED (default 1) and KILN_SCHEDULES (default 2000) choose which and how many. A failure
// prints operator, seed and steps.
#include <gtest/gtest.h>

#include "base/numbers/rng.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "tests/schedules/check_llvm.h"
#include "tests/schedules/environment.h"

namespace kiln {
namespace {

// Part i % kParts checks schedule i, because Bazel gives whole tests to its shards.
constexpr uint64_t kParts = 8;

class RandomSchedules : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomSchedules, ComputeWhatTheOracleComputes) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  const uint64_t count = EnvironmentOr("KILN_SCHEDULES", 2000);
  std::vector<Workload> workloads;
  for (const dag::OpCase& c : dag::SmallOpCases())
    workloads.push_back(MakeWorkload(c.Name(), c.Build(), seed));
  for (uint64_t i = GetParam(); i < count; i += kParts) {
    const uint64_t schedule_seed = SplitSeed(seed, i);
    Rng rng(schedule_seed);
    const Workload& workload = workloads[i % workloads.size()];
    const int length = static_cast<int>(UniformIn(rng, 1, 14));
    const schedule::State state = schedule::RandomSchedule(workload.dag, schedule_seed, length);
    const Status status = CheckByLlvm(workload, state);
    ASSERT_TRUE(status.ok()) << "seed " << seed << ", schedule " << i << ": " << status;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, RandomSchedules, testing::Range<uint64_t>(0, kParts));

}  // namespace
}  // namespace kiln
