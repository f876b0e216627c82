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

std::vector<std::string> FreeIds(const WorkerIndex& index, const std::string& key) {
  std::vector<std::string> ids;
  for (const WorkerIndex::Free& free : index.FreeFor(v1::RUNNER, key)) ids.push_back(free.id);
  return ids;
}

TEST(WorkerIndexTest, FreeAndDriftingWorkersAreForgottenWithTheWorker) {
  WorkerIndex index;
  v1::WorkerState state = Runner("a", 1, {"cuda"});
  state.add_drifts();
  index.SetFree("a", 1, 0);
  EXPECT_THAT(FreeIds(index, "cuda"), IsEmpty()) << "the worker is not known";
  index.Note(state);
  index.SetFree("a", 1, 0);
  EXPECT_THAT(FreeIds(index, "cuda"), ElementsAre("a"));
  EXPECT_THAT(index.FreeFor(v1::BUILDER, "cuda"), IsEmpty());
  EXPECT_THAT(index.drifting(), ElementsAre("a"));
  index.SetFree("a", 0, 1);
  index.Note(Runner("a", 1, {"cuda"}));
  EXPECT_THAT(FreeIds(index, "cuda"), IsEmpty());
  EXPECT_THAT(index.drifting(), IsEmpty());
  index.Note(state);
  index.SetFree("a", 1, 1);
  index.Forget("a");
  EXPECT_THAT(FreeIds(index, "cuda"), IsEmpty());
  EXPECT_THAT(index.drifting(), IsEmpty());
}

TEST(WorkerIndexTest, FreeWorkersAreInTheOrderOfTheirGrants) {
  WorkerIndex index;
  for (const char* id : {"a", "b", "c", "d"}) index.Note(Runner(id, 4, {"cuda", "cuda", "llvm"}));
  index.SetFree("a", 1, 7);
  index.SetFree("b", 1, 3);
  index.SetFree("c", 2, 9);
  index.SetFree("d", 1, 3);
  EXPECT_THAT(FreeIds(index, "cuda"), ElementsAre("c", "b", "d", "a"));
  EXPECT_THAT(FreeIds(index, "llvm"), ElementsAre("c", "b", "d", "a"));
  index.SetFree("c", 1, 10);
  index.SetFree("b", 0, 11);
  EXPECT_THAT(FreeIds(index, "cuda"), ElementsAre("d", "a", "c"));
  // Other keys, and as many free slots.
  index.Note(Runner("d", 4, {"llvm"}));
  EXPECT_THAT(FreeIds(index, "cuda"), ElementsAre("a", "c"));
  EXPECT_THAT(FreeIds(index, "llvm"), ElementsAre("d", "a", "c"));
}

}  // namespace
}  // namespace kiln::tracker
