#include "scheduler/jobs/event_hub.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/time/clock.h"

namespace kiln::scheduler {
namespace {

TEST(EventHubTest, AChangeBeforeTheWaitIsSeen) {
  EventHub hub;
  const uint64_t seen = hub.version("a");
  hub.Notify("a");
  EXPECT_NE(hub.Wait("a", seen, absl::Seconds(20)), seen);
}

TEST(EventHubTest, AChangeWakesTheWaiting) {
  EventHub hub;
  std::jthread notifier([&] {
    absl::SleepFor(absl::Milliseconds(20));
    hub.Notify("a");
  });
  const absl::Time start = absl::Now();
  EXPECT_EQ(hub.Wait("a", 0, absl::Seconds(20)), 1u);
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

TEST(EventHubTest, AnotherJobDoesNot) {
  EventHub hub;
  hub.Notify("b");
  EXPECT_EQ(hub.Wait("a", 0, absl::Milliseconds(20)), 0u);
}

TEST(EventHubTest, ResultsDoNotChangeTheStatusVersion) {
  EventHub hub;
  hub.Notify("a");
  const uint64_t status_version = hub.status_version("a");
  const uint64_t seen = hub.version("a");
  hub.NotifyResults("a");
  EXPECT_NE(hub.Wait("a", seen, absl::Seconds(20)), seen);
  EXPECT_EQ(hub.status_version("a"), status_version);
  hub.Notify("a");
  EXPECT_NE(hub.status_version("a"), status_version);
}

TEST(EventHubTest, CloseEndsAllWaiting) {
  EventHub hub;
  std::jthread closer([&] {
    absl::SleepFor(absl::Milliseconds(20));
    hub.Close();
  });
  const absl::Time start = absl::Now();
  EXPECT_EQ(hub.Wait("a", 0, absl::Seconds(20)), 0u);
  EXPECT_EQ(hub.Wait("a", 0, absl::Seconds(20)), 0u);
  EXPECT_TRUE(hub.closed());
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

TEST(EventHubTest, WatchersCountWhileTheyLive) {
  EventHub hub;
  EXPECT_EQ(hub.watchers(), 0);
  {
    const EventHub::Watcher first(hub);
    const EventHub::Watcher second(hub);
    EXPECT_EQ(hub.watchers(), 2);
  }
  EXPECT_EQ(hub.watchers(), 0);
}

}  // namespace
}  // namespace kiln::scheduler
