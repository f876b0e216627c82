#include "tracker/worker_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::tracker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::WorkerState Runner(const std::string& id, uint32_t slots,
                       const std::vector<std::string>& keys) {
  v1::WorkerState state;
  state.set_id(id);
  state.set_kind(v1::RUNNER);
  state.set_slots(slots);
  for (const std::string& key : keys) state.add_keys(key);
  return state;
}

TEST(WorkerIndexTest, SlotsFollowTheStates) {
  WorkerIndex index;
  index.Note(Runner("a", 2, {"cuda", "cuda", "llvm"}));
  index.Note(Runner("b", 3, {"cuda"}));
  EXPECT_EQ(index.SlotsFor(v1::RUNNER, "cuda"), 5u);
  EXPECT_EQ(index.SlotsFor(v1::RUNNER, "llvm"), 2u);
  EXPECT_EQ(index.SlotsFor(v1::BUILDER, "cuda"), 0u);
  index.Note(Runner("a", 4, {"cuda"}));
  EXPECT_EQ(index.SlotsFor(v1::RUNNER, "cuda"), 7u);
  EXPECT_EQ(index.SlotsFor(v1::RUNNER, "llvm"), 0u);
  index.Forget("b");
  index.Forget("b");
  EXPECT_EQ(index.SlotsFor(v1::RUNNER, "cuda"), 4u);
}

TEST(WorkerIndexTest, FreeAndDriftingWorkersAreForgottenWithTheWorker) {
  WorkerIndex index;
  v1::WorkerState state = Runner("a", 1, {"cuda"});
  state.add_drifts();
  index.Note(state);
  index.SetFree("a", true);
  EXPECT_THAT(index.free(), ElementsAre("a"));
  EXPECT_THAT(index.drifting(), ElementsAre("a"));
  index.SetFree("a", false);
  index.Note(Runner("a", 1, {"cuda"}));
  EXPECT_THAT(index.free(), IsEmpty());
  EXPECT_THAT(index.drifting(), IsEmpty());
  index.Note(state);
  index.SetFree("a", true);
  index.Forget("a");
  EXPECT_THAT(index.free(), IsEmpty());
  EXPECT_THAT(index.drifting(), IsEmpty());
}

}  // namespace
}  // namespace kiln::tracker
