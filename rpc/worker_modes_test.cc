#include "rpc/worker_modes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace kiln {
namespace {

using testing::ElementsAre;

EffectiveMode Mode(v1::WorkerMode mode, std::string sentence) { return {mode, sentence}; }

TEST(WorkerModesTest, TheOrderOfStrictness) {
  const std::vector<v1::WorkerMode> order = {v1::WORKER_SERVES, v1::WORKER_CORDONED,
                                             v1::WORKER_DRAINS, v1::WORKER_QUARANTINED,
                                             v1::WORKER_PAUSED};
  ASSERT_EQ(order.size(), static_cast<size_t>(v1::WorkerMode_ARRAYSIZE)) << "each mode has a place";
  std::vector<std::string> takes, gives_back, refuses, stops;
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(StrictnessOf(order[i]), static_cast<int>(i));
    if (TakesNewLeases(order[i])) takes.emplace_back(ModeName(order[i]));
    if (GivesLeasesBack(order[i])) gives_back.emplace_back(ModeName(order[i]));
    if (RefusesTrials(order[i])) refuses.emplace_back(ModeName(order[i]));
    if (StopsTrials(order[i])) stops.emplace_back(ModeName(order[i]));
  }
  EXPECT_THAT(takes, ElementsAre("serves"));
  EXPECT_THAT(gives_back, ElementsAre("drains", "quarantined", "paused"));
  EXPECT_THAT(refuses, ElementsAre("quarantined", "paused"));
  EXPECT_THAT(stops, ElementsAre("paused"));
  const auto unknown = static_cast<v1::WorkerMode>(17);
  EXPECT_FALSE(TakesNewLeases(unknown));
  EXPECT_TRUE(GivesLeasesBack(unknown));
}

TEST(WorkerModesTest, TheStrictestConditionCounts) {
  WorkerModes modes;
  EXPECT_EQ(modes.Effective(), EffectiveMode());
  modes.Set("hours", v1::WORKER_PAUSED, "outside of its hours 22:00-06:00");
  modes.Set("canary", v1::WORKER_QUARANTINED, "the canary took 2 ms");
  EXPECT_EQ(modes.Effective(), Mode(v1::WORKER_PAUSED, "outside of its hours 22:00-06:00"));
  modes.Clear("hours");
  EXPECT_EQ(modes.Effective(), Mode(v1::WORKER_QUARANTINED, "the canary took 2 ms"));
  modes.Set("canary", v1::WORKER_QUARANTINED, "the canary took 3 ms");
  EXPECT_EQ(modes.Effective().sentence, "the canary took 3 ms");
  modes.Ask(v1::WORKER_DRAINS, "ada");
  EXPECT_EQ(modes.Effective().mode, v1::WORKER_QUARANTINED);
  modes.Clear("canary");
  EXPECT_EQ(modes.Effective(), Mode(v1::WORKER_DRAINS, "drained by ada"));
  modes.Clear("never set");
  modes.Set("hours", v1::WORKER_DRAINS, "night");
  EXPECT_EQ(modes.Effective().sentence, "drained by ada") << "the operator's goes first";
  modes.Ask(v1::WORKER_SERVES, "bob");
  EXPECT_EQ(modes.Effective().sentence, "night");
  modes.Clear("hours");
  EXPECT_EQ(modes.Effective(), EffectiveMode());
}

TEST(WorkerModesTest, AConditionMaySayHowTheWorkerServes) {
  WorkerModes modes;
  modes.Set("share", v1::WORKER_SERVES, "takes at most 50% of the device's time");
  EXPECT_EQ(modes.Effective(), Mode(v1::WORKER_SERVES, "takes at most 50% of the device's time"));
  modes.Ask(v1::WORKER_CORDONED, "ada");
  EXPECT_EQ(modes.Effective(), Mode(v1::WORKER_CORDONED, "cordoned by ada"));
}

TEST(WorkerModesTest, SentencesOfOperators) {
  EXPECT_EQ(AskedMode(v1::WORKER_PAUSED, "ada").sentence, "paused by ada");
  EXPECT_EQ(AskedMode(v1::WORKER_CORDONED, "ada").sentence, "cordoned by ada");
  EXPECT_EQ(AskedMode(v1::WORKER_PAUSED, "").sentence, "paused by an operator");
  EXPECT_EQ(AskedMode(v1::WORKER_SERVES, "ada"), EffectiveMode());
}

TEST(WorkerModesTest, TheStateRepeatsWhatWasAsked) {
  WorkerModes modes;
  modes.Ask(v1::WORKER_CORDONED, "ada");
  modes.Set("device", v1::WORKER_QUARANTINED, "no child starts");
  v1::WorkerState state;
  modes.Fill(&state);
  EXPECT_EQ(state.mode(), v1::WORKER_QUARANTINED);
  EXPECT_EQ(state.mode_reason(), "no child starts");
  EXPECT_EQ(state.asked_mode(), v1::WORKER_CORDONED);
  EXPECT_EQ(state.asked_by(), "ada");
  modes.Ask(v1::WORKER_SERVES, "bob");
  modes.Clear("device");
  modes.Fill(&state);
  EXPECT_EQ(state.mode(), v1::WORKER_SERVES);
  EXPECT_EQ(state.mode_reason(), "");
  EXPECT_EQ(state.asked_by(), "bob");
}

TEST(WorkerModesTest, SubscribersHearOfChangesAlone) {
  WorkerModes modes;
  std::vector<v1::WorkerMode> heard;
  auto subscription =
      std::make_optional(modes.Subscribe([&] { heard.push_back(modes.Effective().mode); }));
  modes.Set("a", v1::WORKER_PAUSED, "x");
  modes.Set("a", v1::WORKER_PAUSED, "x");
  modes.Set("b", v1::WORKER_DRAINS, "y");
  modes.Ask(v1::WORKER_CORDONED, "ada");
  EXPECT_THAT(heard, ElementsAre(v1::WORKER_PAUSED));
  modes.Set("a", v1::WORKER_PAUSED, "another sentence");
  modes.Clear("a");
  EXPECT_THAT(heard, ElementsAre(v1::WORKER_PAUSED, v1::WORKER_PAUSED, v1::WORKER_DRAINS));
  WorkerModes::Subscription moved = std::move(*subscription);
  subscription.reset();
  modes.Clear("b");
  EXPECT_EQ(heard.back(), v1::WORKER_CORDONED) << "the subscription has moved";
  moved = WorkerModes::Subscription();
  modes.Ask(v1::WORKER_SERVES, "ada");
  EXPECT_EQ(heard.size(), 4u);
}

// A subscriber may be destroyed while others change the modes.
TEST(WorkerModesTest, ThreadsChangeAndSubscribe) {
  WorkerModes modes;
  std::atomic<bool> done = false;
  std::thread changer([&] {
    for (int i = 0; i < 2'000; ++i) {
      modes.Set("a", i % 2 == 0 ? v1::WORKER_PAUSED : v1::WORKER_DRAINS, "x");
      modes.Ask(i % 3 == 0 ? v1::WORKER_SERVES : v1::WORKER_CORDONED, "ada");
    }
    done = true;
  });
  int looked = 0;
  do {
    auto alive = std::make_unique<int>(0);
    const auto subscription = modes.Subscribe([&alive] { ++*alive; });
    v1::WorkerState state;
    modes.Fill(&state);
    ++looked;
  } while (!done);
  changer.join();
  EXPECT_GT(looked, 0);
  EXPECT_EQ(modes.Effective().mode, v1::WORKER_DRAINS);
}

}  // namespace
}  // namespace kiln
