#include "scheduler/remeasure/elites.h"

#include <gtest/gtest.h>

#include <set>

namespace kiln::scheduler {
namespace {

constexpr char kDevice[] = "GPU-1";

std::shared_ptr<const v1::Artifact> ArtifactOf(size_t bytes) {
  auto artifact = std::make_shared<v1::Artifact>();
  artifact->set_binary(std::string(bytes, 'x'));
  return artifact;
}

Elite MakeElite(int64_t id, double cost_s, int task = 0, size_t bytes = 10) {
  return {.task = task,
          .trial = static_cast<uint32_t>(id),
          .record_id = id,
          .hash = static_cast<uint64_t>(id),
          .cost_s = cost_s,
          .artifact = ArtifactOf(bytes)};
}

class ElitesTest : public testing::Test {
 protected:
  // Reads the elite whose turn it is. Returns its record id, or -1 if there is no turn.
  int64_t ReadNext(double cost_s, const std::string& device = kDevice) {
    const auto turn = board_.Next(device);
    if (!turn.has_value()) return -1;
    const std::vector<double> costs_s = {cost_s, cost_s};
    board_.Read(*turn, device, costs_s, 0.5);
    return turn->record_id;
  }
  EliteSet board_{{.finalists = 3}, {0}};
};

TEST_F(ElitesTest, TheBestAreReadInRoundsAndNobodyTwiceInARow) {
  EXPECT_EQ(ReadNext(1e-3), -1);
  board_.CountTrials(0, 24);
  board_.Add(MakeElite(1, 1.00e-3));
  EXPECT_EQ(ReadNext(1e-3), 1);
  EXPECT_EQ(ReadNext(1e-3), 1) << "there is no other";
  for (const auto& [id, cost_s] : {std::pair(2, 1.01e-3), {3, 1.02e-3}, {4, 1.03e-3}, {5, 2e-3}}) {
    board_.Add(MakeElite(id, cost_s));
  }
  int64_t last = 1;
  std::map<int64_t, int> turns;
  for (int i = 0; i < 30; ++i) {
    const int64_t id = ReadNext(1e-3 * (1 + 0.01 * static_cast<double>(last)));
    EXPECT_NE(id, last);
    last = id;
    ++turns[id];
  }
  // Three lead. A late elite does not catch up at the cost of the others.
  EXPECT_EQ(turns.size(), 3u);
  for (const auto& [id, count] : turns) EXPECT_NEAR(count, 10, 1) << id;
}

TEST_F(ElitesTest, OfManyDevicesAFewAreKept) {
  board_.CountTrials(0, 24);
  for (const int id : {1, 2}) board_.Add(MakeElite(id, 1e-3));
  const int64_t first = ReadNext(1e-3, "home");
  const auto known = [&](const std::string& device) {
    int readings = 0;
    for (const int64_t id : {1, 2})
      readings += static_cast<int>(board_.KnownOn(id, device).readings);
    return readings;
  };
  for (int i = 0; i < 500; ++i) {
    EXPECT_NE(ReadNext(1e-3, "GPU-" + std::to_string(i)), -1);
    // The device whose readings count does not read here, and keeps its place.
    EXPECT_EQ(board_.KnownOn(first, "home").readings, 2u);
  }
  for (int i = 500; i < 1000; ++i) {
    EXPECT_NE(ReadNext(1e-3, "GPU-" + std::to_string(i)), -1);
    if (i % 5 == 0) ReadNext(1e-3, "often");
  }
  int devices = 0;
  for (int i = 0; i < 1000; ++i) devices += known("GPU-" + std::to_string(i)) > 0 ? 1 : 0;
  EXPECT_LE(devices, 7);
  EXPECT_GT(devices, 0);
  EXPECT_GT(known("often"), 100) << "a device that comes again keeps its readings";
}

TEST_F(ElitesTest, ABetterOneTakesAPlaceAndASlowOneLosesIt) {
  board_.CountTrials(0, 24);
  for (const int id : {1, 2, 3, 4}) board_.Add(MakeElite(id, 1e-3 + 1e-6 * id));
  board_.Add(MakeElite(5, 0.9e-3));  // a lucky reading
  std::map<int64_t, double> truth = {{1, 1e-3}, {2, 1e-3}, {3, 1e-3}, {4, 1e-3}, {5, 1.5e-3}};
  const std::vector<int64_t> ids = {1, 2, 3, 4, 5};
  std::multiset<int64_t> late;
  for (int i = 0; i < 40; ++i) {
    const auto turn = board_.Next(kDevice);
    ASSERT_TRUE(turn.has_value());
    const std::vector<double> costs_s(4, truth[turn->record_id]);
    board_.Read(*turn, kDevice, costs_s, 0.01);
    if (i >= 20) late.insert(turn->record_id);
  }
  EXPECT_EQ(late.count(5), 0u);
  EXPECT_GT(late.count(3), 0u) << "the next one leads instead";
  // The search is told once of the candidate whose first reading was wrong.
  const auto corrections = board_.TakeCorrections();
  ASSERT_FALSE(corrections.empty());
  bool told = false;
  for (const auto& c : corrections) {
    if (c.trial != 5) continue;
    told = true;
    EXPECT_NEAR(c.cost_s.value(), 1.5e-3, 1e-4);
    EXPECT_EQ(c.hash, 5u);
  }
  EXPECT_TRUE(told);
  EXPECT_TRUE(board_.TakeCorrections().empty());
}

TEST_F(ElitesTest, WhatIsReadIsWrittenOnceAndRestored) {
  board_.CountTrials(0, 24);
  for (const int id : {1, 2}) board_.Add(MakeElite(id, 1e-3));
  EXPECT_FALSE(board_.has_unwritten());
  for (int i = 0; i < 8; ++i) ReadNext(1.1e-3);
  EXPECT_TRUE(board_.has_unwritten());
  const auto remeasured = board_.TakeUnwritten();
  ASSERT_EQ(remeasured.size(), 2u);
  EXPECT_FALSE(board_.has_unwritten());
  EXPECT_EQ(remeasured[0].id, 1);
  EXPECT_EQ(remeasured[0].costs_s, std::vector<double>(8, 1.1e-3));
  EXPECT_EQ(remeasured[0].readings, 8u);
  EXPECT_EQ(remeasured[0].device, kDevice);
  EXPECT_DOUBLE_EQ(remeasured[0].run_s, 2);
  // A restored elite of an earlier run has no artifact, so it waits for the final race, but keeps
  // its place.
  EliteSet next({.finalists = 1}, {0});
  Elite restored = MakeElite(1, 1e-3);
  restored.artifact = nullptr;
  restored.known = remeasured[0];
  next.Add(restored);
  EXPECT_FALSE(next.Next(kDevice).has_value());
  EXPECT_EQ(next.KnownOn(1, kDevice).costs_s, remeasured[0].costs_s);
  EXPECT_EQ(next.ArtifactOf(1), nullptr);
  EXPECT_TRUE(next.TakeCorrections().empty());
  EXPECT_FALSE(next.has_unwritten());
}

TEST_F(ElitesTest, AWrongAnswerFailsAtOnceACrashTheSecondTime) {
  board_.CountTrials(0, 24);
  board_.Add(MakeElite(1, 1e-3));
  board_.Add(MakeElite(2, 1e-3));
  const EliteSet::Turn first{.task = 0, .record_id = 1}, second{.task = 0, .record_id = 2};
  const std::vector<double> costs_s = {1e-3, 1e-3};
  EXPECT_FALSE(board_.Fail(first, v1::RUNTIME_DEVICE_ERROR, "trap", 0.1));
  board_.Read(first, kDevice, costs_s, 0.1);
  EXPECT_FALSE(board_.Fail(first, v1::RUNTIME_DEVICE_ERROR, "trap", 0.1));
  EXPECT_FALSE(board_.has_failures());
  EXPECT_TRUE(board_.Fail(first, v1::RUNTIME_DEVICE_ERROR, "trap", 0.1));
  EXPECT_TRUE(board_.Fail(second, v1::WRONG_ANSWER_ERROR, "element 7", 0.1));
  EXPECT_TRUE(board_.has_failures());
  const auto remeasured = board_.TakeUnwritten();
  ASSERT_EQ(remeasured.size(), 2u);
  EXPECT_EQ(remeasured[1].error, v1::WRONG_ANSWER_ERROR);
  EXPECT_EQ(remeasured[1].message, "when it was measured again: element 7");
  EXPECT_EQ(board_.TakeCorrections().size(), 2u);
  EXPECT_FALSE(board_.Next(kDevice).has_value());
}

TEST_F(ElitesTest, ReadingsOfTwoDevicesAreKeptApart) {
  board_.CountTrials(0, 24);
  board_.Add(MakeElite(1, 1.00e-3));
  board_.Add(MakeElite(2, 1.01e-3));
  for (int i = 0; i < 8; ++i) ReadNext(1e-3, "GPU-1");
  for (int i = 0; i < 8; ++i) ReadNext(2e-3, "GPU-2");  // a slow device
  EXPECT_DOUBLE_EQ(board_.KnownOn(1, "GPU-1").costs_s[0], 1e-3);
  EXPECT_DOUBLE_EQ(board_.KnownOn(1, "GPU-2").costs_s[0], 2e-3);
  const auto remeasured = board_.TakeUnwritten();
  EXPECT_EQ(remeasured[0].device, "GPU-1");
  EXPECT_EQ(remeasured[0].costs_s, std::vector<double>(8, 1e-3));
  EXPECT_DOUBLE_EQ(remeasured[0].run_s + remeasured[1].run_s, 8);
}

TEST_F(ElitesTest, OnlyTheFastestAlternativesLead) {
  EliteSet board({.finalists = 3}, {0, 0, 2});
  for (const int task : {0, 1, 2}) board.CountTrials(task, 24);
  board.Add(MakeElite(1, 1e-3, 0));
  board.Add(MakeElite(2, 4e-3, 1));  // another variant of the same group
  board.Add(MakeElite(3, 8e-3, 2));
  EXPECT_TRUE(board.MayBeElite(1, 1.2e-3));
  EXPECT_FALSE(board.MayBeElite(1, 1.3e-3));
  EXPECT_FALSE(board.MayBeElite(2, 11e-3)) << "a reading of it would keep a trial waiting";
  std::set<int64_t> read;
  const std::vector<double> costs_s = {1e-3};
  for (int i = 0; i < 6; ++i) read.insert(board.Next(kDevice)->record_id);
  EXPECT_EQ(read, (std::set<int64_t>{1, 3}));
}

TEST_F(ElitesTest, WellMeasuredElitesAreNotReadAgain) {
  board_.Add(MakeElite(1, 1e-3));
  int turns = 0;
  while (ReadNext(1e-3) > 0) ASSERT_LT(++turns, 1000);
  EXPECT_EQ(turns, 50);
}

TEST_F(ElitesTest, MemoryIsBounded) {
  EliteSet board({.finalists = 4, .most_bytes = 3500}, {0});
  board.CountTrials(0, 100);
  for (int id = 1; id <= 20; ++id) board.Add(MakeElite(id, 1e-3 - 1e-6 * id, 0, 1000));
  int kept = 0;
  for (int id = 1; id <= 20; ++id) kept += board.ArtifactOf(id) != nullptr;
  EXPECT_EQ(kept, 3);
  EXPECT_NE(board.ArtifactOf(20), nullptr) << "the best";
}

}  // namespace
}  // namespace kiln::scheduler
