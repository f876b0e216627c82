#include "builder/cache.h"

#include <atomic>
#include <thread>
#include <vector>

#include "base/status_testing.h"

namespace kiln::builder {
namespace {

using testing::_;

// Gives the result that the test sets, counts the builds, and lets none end while `held` is set.
class FakeExecutor : public BuildExecutor {
 public:
  StatusOr<BuildOutcome> Build(const v1::BuildRequest& request,
                               const std::function<bool()>& cancelled) override {
    ++builds;
    while (held) {
      if (cancelled()) return Cancelled("cancelled");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!status.ok()) return status;
    BuildOutcome outcome;
    outcome.repeatable = repeatable;
    outcome.reply.set_error(error);
    outcome.reply.set_build_s(1.5);
    outcome.reply.mutable_artifact()->set_binary(request.steps() + std::string(binary_bytes, 'x'));
    return outcome;
  }
  std::atomic<int> builds{0};
  std::atomic<bool> held{false};
  Status status;
  bool repeatable = true;
  v1::ErrorKind error = v1::NO_ERROR;
  size_t binary_bytes = 0;
};

v1::BuildRequest Request(const std::string& steps) {
  v1::BuildRequest request;
  request.set_dag("dag");
  request.set_target("null");
  request.set_steps(steps);
  return request;
}

bool Never() { return false; }

// Never cancels. Sets `asked` once the call builds, or waits for another call's build.
std::function<bool()> AskedWhetherItIsCancelled(std::atomic<bool>& asked) {
  return [&asked] {
    asked = true;
    return false;
  };
}

void WaitUntil(const std::function<bool()>& done) {
  for (int i = 0; i < 10'000 && !done(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(done());
}

TEST(CacheTest, BuildsOnce) {
  FakeExecutor fake;
  BuildCache cache(fake, 1 << 20, "1");
  ASSERT_OK_AND_ASSIGN(BuildOutcome first, cache.Build(Request("a"), Never));
  EXPECT_FALSE(first.reply.cached());
  EXPECT_EQ(first.reply.build_s(), 1.5);
  ASSERT_OK_AND_ASSIGN(BuildOutcome second, cache.Build(Request("a"), Never));
  EXPECT_TRUE(second.reply.cached());
  EXPECT_EQ(second.reply.build_s(), 0);
  EXPECT_EQ(second.reply.artifact().binary(), "a");
  EXPECT_EQ(fake.builds, 1);
  EXPECT_EQ(cache.stats().hits, 1);
}

TEST(CacheTest, KeyHasEverythingThatMattersAndNoLimits) {
  const std::string key = RequestKey(Request("a"), "1");
  EXPECT_NE(RequestKey(Request("b"), "1"), key);
  EXPECT_NE(RequestKey(Request("a"), "2"), key);
  v1::BuildRequest other = Request("a");
  other.set_fault(v1::FAULT_NULL_STORE);
  EXPECT_NE(RequestKey(other, "1"), key);
  other = Request("a");
  other.set_target("llvm");
  EXPECT_NE(RequestKey(other, "1"), key);
  // The same bytes in a row, split elsewhere.
  other = Request("la");
  other.set_target("nul");
  EXPECT_NE(RequestKey(other, "1"), key);
  other = Request("a");
  other.mutable_hardware()->set_max_shared_memory_per_block_bytes(232448);
  EXPECT_NE(RequestKey(other, "1"), key);
  other = Request("a");
  other.set_source_only(true);
  EXPECT_NE(RequestKey(other, "1"), key);
  // The number of cores does not matter.
  other = Request("a");
  other.mutable_hardware()->set_num_cores(7);
  EXPECT_EQ(RequestKey(other, "1"), key);
  other.set_timeout_ms(7);
  other.set_memory_limit_bytes(7);
  EXPECT_EQ(RequestKey(other, "1"), key);
}

TEST(CacheTest, FailuresAreCachedUnlessTheyMayBeTransient) {
  FakeExecutor fake;
  BuildCache cache(fake, 1 << 20, "1");
  fake.error = v1::INSTANTIATION_ERROR;
  ASSERT_OK(cache.Build(Request("a"), Never));
  ASSERT_OK_AND_ASSIGN(BuildOutcome again, cache.Build(Request("a"), Never));
  EXPECT_TRUE(again.reply.cached());
  EXPECT_EQ(again.reply.error(), v1::INSTANTIATION_ERROR);
  EXPECT_EQ(fake.builds, 1);

  fake.error = v1::BUILD_TIMEOUT_ERROR;
  fake.repeatable = false;
  ASSERT_OK(cache.Build(Request("b"), Never));
  ASSERT_OK_AND_ASSIGN(again, cache.Build(Request("b"), Never));
  EXPECT_FALSE(again.reply.cached());
  EXPECT_EQ(fake.builds, 3);

  fake.status = Unavailable("no child");
  EXPECT_THAT(cache.Build(Request("c"), Never), StatusIs(StatusCode::kUnavailable, "no child"));
  fake.status = OkStatus();
  EXPECT_OK(cache.Build(Request("c"), Never));
  EXPECT_EQ(cache.stats().entries, 1);
}

TEST(CacheTest, LeastRecentlyUsedGoesFirst) {
  FakeExecutor fake;
  fake.binary_bytes = 1000;
  // Room for three replies.
  BuildCache cache(fake, 5000, "1");
  for (const char* steps : {"a", "b", "c", "a", "d"}) {
    ASSERT_OK(cache.Build(Request(steps), Never));
    EXPECT_LE(cache.stats().bytes, 5000);
  }
  EXPECT_EQ(cache.stats().entries, 3);
  EXPECT_EQ(fake.builds, 4);
  for (const char* steps : {"a", "c", "d"}) ASSERT_OK(cache.Build(Request(steps), Never));
  EXPECT_EQ(fake.builds, 4);
  ASSERT_OK(cache.Build(Request("b"), Never));
  EXPECT_EQ(fake.builds, 5);
}

TEST(CacheTest, WhatDoesNotFitIsNotKept) {
  FakeExecutor fake;
  BuildCache cache(fake, 5000, "1");
  ASSERT_OK(cache.Build(Request("a"), Never));
  fake.binary_bytes = 10'000;
  ASSERT_OK(cache.Build(Request("b"), Never));
  EXPECT_EQ(cache.stats().entries, 1);
  BuildCache none(fake, 0, "1");
  ASSERT_OK(none.Build(Request("a"), Never));
  EXPECT_EQ(none.stats().entries, 0);
}

TEST(CacheTest, ConcurrentCallsForTheSameBuildOnce) {
  FakeExecutor fake;
  fake.held = true;
  // Only the flight can answer, because the reply is not kept.
  fake.repeatable = false;
  BuildCache cache(fake, 1 << 20, "1");
  std::atomic<int> cached{0};
  std::vector<std::atomic<bool>> waits(8);
  std::vector<std::thread> callers;
  for (std::atomic<bool>& waiting : waits) {
    callers.emplace_back([&] {
      const auto outcome = cache.Build(Request("a"), AskedWhetherItIsCancelled(waiting));
      ASSERT_OK(outcome);
      cached += outcome->reply.cached();
    });
  }
  for (const std::atomic<bool>& waiting : waits) WaitUntil([&] { return waiting.load(); });
  fake.held = false;
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(fake.builds, 1);
  EXPECT_EQ(cached, 7);
  EXPECT_EQ(cache.stats().joined, 7);
}

TEST(CacheTest, WaitingCallTakesOverWhenTheFirstIsCancelled) {
  FakeExecutor fake;
  fake.held = true;
  BuildCache cache(fake, 1 << 20, "1");
  std::atomic<bool> stop{false};
  std::thread first([&] {
    EXPECT_THAT(cache.Build(Request("a"), [&] { return stop.load(); }),
                StatusIs(StatusCode::kCancelled, _));
  });
  WaitUntil([&] { return fake.builds == 1; });
  std::atomic<bool> waits{false};
  std::thread second(
      [&] { EXPECT_OK(cache.Build(Request("a"), AskedWhetherItIsCancelled(waits))); });
  WaitUntil([&] { return waits.load(); });
  EXPECT_EQ(fake.builds, 1);
  stop = true;
  first.join();
  WaitUntil([&] { return fake.builds == 2; });
  fake.held = false;
  second.join();
}

TEST(CacheTest, WaitingCallCanBeCancelled) {
  FakeExecutor fake;
  fake.held = true;
  BuildCache cache(fake, 1 << 20, "1");
  std::thread first([&] { EXPECT_OK(cache.Build(Request("a"), Never)); });
  WaitUntil([&] { return fake.builds == 1; });
  EXPECT_THAT(cache.Build(Request("a"), [] { return true; }), StatusIs(StatusCode::kCancelled, _));
  fake.held = false;
  first.join();
  EXPECT_EQ(fake.builds, 1);
}

TEST(CacheTest, OtherLimitsAreAnotherBuild) {
  FakeExecutor fake;
  fake.held = true;
  BuildCache cache(fake, 1 << 20, "1");
  std::thread first([&] { EXPECT_OK(cache.Build(Request("a"), Never)); });
  v1::BuildRequest longer = Request("a");
  longer.set_timeout_ms(60'000);
  std::thread second([&] { EXPECT_OK(cache.Build(longer, Never)); });
  WaitUntil([&] { return fake.builds == 2; });
  fake.held = false;
  first.join();
  second.join();
  EXPECT_EQ(cache.stats().entries, 1);
}

}  // namespace
}  // namespace kiln::builder
