// The pool with real children.
#include "builder/pool.h"

#include <signal.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/status_testing.h"
#include "builder/memory_limit.h"
#include "builder/requests_testing.h"

namespace kiln::builder {
namespace {

using testing::_;
using testing::AllOf;
using testing::HasSubstr;

PoolOptions Options(int jobs) {
  PoolOptions options;
  options.child_command = {"builder/kiln_builder", "--child"};
  options.jobs = jobs;
  return options;
}

bool Never() { return false; }

v1::BuildReply BuildOrDie(Pool& pool, const v1::BuildRequest& request) {
  auto outcome = pool.Build(request, Never);
  KILN_CHECK(outcome.ok(), "{}", Message(outcome.status()));
  return outcome->reply;
}

void ExpectWorks(Pool& pool) {
  const v1::BuildReply reply = BuildOrDie(pool, MatmulRequest("null"));
  EXPECT_EQ(reply.error(), v1::NO_ERROR) << reply.message();
}

TEST(PoolTest, ChildrenGiveUpNewPrivileges) {
  Pool pool(Options(1));
  ExpectWorks(pool);
  const std::vector<pid_t> idle = pool.IdlePids();
  ASSERT_FALSE(idle.empty());
  // The last one has worked, so its start is over.
  ASSERT_OK_AND_ASSIGN(const std::string status,
                       ReadFile(fmt::format("/proc/{}/status", idle.back())));
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
}

TEST(PoolTest, BuildsInOneWarmChild) {
  Pool pool(Options(1));
  const v1::BuildReply first = BuildOrDie(pool, MatmulRequest("llvm"));
  ASSERT_EQ(first.error(), v1::NO_ERROR) << first.message();
  EXPECT_GT(first.build_s(), 0);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(BuildOrDie(pool, MatmulRequest("llvm")).artifact().digest(),
              first.artifact().digest());
  }
  EXPECT_EQ(pool.stats().children_started, 2);  // one works, one stands by
  EXPECT_EQ(pool.stats().children_lost, 0);
}

TEST(PoolTest, FailedCandidatesAndBadRequestsCostNoChild) {
  Pool pool(Options(1));
  const v1::BuildReply reply = BuildOrDie(pool, MatmulRequest("llvm", "[["));
  EXPECT_EQ(reply.error(), v1::INSTANTIATION_ERROR);
  EXPECT_FALSE(reply.message().empty());
  EXPECT_THAT(pool.Build(MatmulRequest("vax"), Never),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("vax")));
  // Characters of more than one byte, which a message may quote the first byte of.
  v1::BuildRequest foreign = MatmulRequest("null");
  for (const char* dag : {"ü", "input ü: float32[3]\n", "input A: float32[3]\nC[i: 3] = A[ü]\n"}) {
    foreign.set_dag(dag);
    EXPECT_THAT(pool.Build(foreign, Never), StatusIs(StatusCode::kInvalidArgument, _)) << dag;
  }
  foreign = MatmulRequest("ü");
  EXPECT_THAT(pool.Build(foreign, Never), StatusIs(StatusCode::kInvalidArgument, _));
  EXPECT_EQ(BuildOrDie(pool, MatmulRequest("null", "[[\"ü\", 2, 0]]")).error(),
            v1::INSTANTIATION_ERROR);
  ExpectWorks(pool);
  EXPECT_EQ(pool.stats().children_lost, 0);
}

TEST(PoolTest, CrashCostsOneTrialAndOneChild) {
  Pool pool(Options(1));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const BuildOutcome outcome,
                         pool.Build(FaultRequest(v1::FAULT_COMPILER_CRASH), Never));
    EXPECT_EQ(outcome.reply.error(), v1::COMPILE_HOST_ERROR);
    EXPECT_EQ(outcome.reply.message(), "compiler process killed by signal 6 (Aborted)");
    EXPECT_FALSE(outcome.repeatable);
    ExpectWorks(pool);
  }
  EXPECT_EQ(pool.stats().children_lost, 3);
}

TEST(PoolTest, HangIsKilledAfterItsTime) {
  Pool pool(Options(1));
  ASSERT_OK_AND_ASSIGN(const BuildOutcome outcome,
                       pool.Build(FaultRequest(v1::FAULT_COMPILER_HANG, 300), Never));
  EXPECT_EQ(outcome.reply.error(), v1::BUILD_TIMEOUT_ERROR);
  EXPECT_EQ(outcome.reply.message(), "not finished after 300ms");
  EXPECT_FALSE(outcome.repeatable);
  EXPECT_GE(outcome.reply.build_s(), 0.3);
  ExpectWorks(pool);
}

TEST(PoolTest, DefaultTimeApplies) {
  PoolOptions options = Options(1);
  options.timeout_ms = 200;
  Pool pool(options);
  EXPECT_EQ(BuildOrDie(pool, FaultRequest(v1::FAULT_COMPILER_HANG)).message(),
            "not finished after 200ms");
}

TEST(PoolTest, MemoryLimitHoldsForOneBuild) {
  if (!MemoryLimit::Works()) GTEST_SKIP() << "sanitizer build";
  Pool pool(Options(1));
  v1::BuildRequest starved = MatmulRequest("llvm");
  starved.set_memory_limit_bytes(1 << 20);  // less than the child has when it begins
  ASSERT_OK_AND_ASSIGN(const BuildOutcome outcome, pool.Build(starved, Never));
  EXPECT_EQ(outcome.reply.error(), v1::COMPILE_HOST_ERROR);
  EXPECT_THAT(outcome.reply.message(), AllOf(HasSubstr("signal 6"), HasSubstr("out of memory")));
  EXPECT_FALSE(outcome.repeatable);
  EXPECT_EQ(BuildOrDie(pool, MatmulRequest("llvm")).error(), v1::NO_ERROR);

  // A limit that is kept costs nothing, and the next build has its own.
  v1::BuildRequest enough = MatmulRequest("llvm");
  enough.set_memory_limit_bytes(uint64_t{1} << 30);
  EXPECT_EQ(BuildOrDie(pool, enough).error(), v1::NO_ERROR);
  enough.set_memory_limit_bytes(~uint64_t{0});
  EXPECT_EQ(BuildOrDie(pool, enough).error(), v1::NO_ERROR);
  EXPECT_EQ(pool.stats().children_lost, 1);
}

TEST(PoolTest, ChildrenKilledBetweenBuildsAreNotNoticed) {
  Pool pool(Options(2));
  for (int round = 0; round < 5; ++round) {
    ExpectWorks(pool);
    for (const pid_t pid : pool.IdlePids()) ASSERT_EQ(kill(pid, SIGKILL), 0);
    // In every other round they are still dying.
    if (round % 2 == 0) Clock::Real().SleepFor(absl::Milliseconds(50));
  }
  ExpectWorks(pool);
  EXPECT_GE(pool.stats().children_lost, 5);
}

TEST(PoolTest, ChildrenAreReplacedAfterManyBuilds) {
  PoolOptions options = Options(1);
  options.max_builds = 3;
  Pool pool(options);
  for (int i = 0; i < 9; ++i) ExpectWorks(pool);
  EXPECT_EQ(pool.stats().children_replaced, 3);
  EXPECT_EQ(pool.stats().children_lost, 0);
}

TEST(PoolTest, ChildrenThatHaveGrownAreReplaced) {
  PoolOptions options = Options(1);
  options.max_child_bytes = 1;
  Pool pool(options);
  for (int i = 0; i < 3; ++i) ExpectWorks(pool);
  EXPECT_EQ(pool.stats().children_replaced, 3);
}

TEST(PoolTest, NoChildIsAnErrorOfTheInfrastructure) {
  PoolOptions options = Options(1);
  options.child_command = {"/no/such/program"};
  Pool missing(options);
  EXPECT_THAT(missing.Build(MatmulRequest("null"), Never),
              StatusIs(StatusCode::kUnavailable, HasSubstr("/no/such/program")));
  options.child_command = {"/bin/false"};
  Pool broken(options);
  EXPECT_THAT(broken.Build(MatmulRequest("null"), Never),
              StatusIs(StatusCode::kUnavailable, HasSubstr("exit status 1")));
}

TEST(PoolTest, ManyCallersShareFewChildren) {
  constexpr int kCallers = 16, kBuilds = 6;
  Pool pool(Options(2));
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < kBuilds; ++i) {
        const int factor = 1 << ((caller + i) % 5);
        const auto outcome =
            pool.Build(MatmulRequest(i % 2 == 0 ? "null" : "llvm", SplitRows(factor)), Never);
        ASSERT_OK(outcome);
        EXPECT_EQ(outcome->reply.error(), v1::NO_ERROR) << outcome->reply.message();
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_LE(pool.stats().children_started, 4);
  EXPECT_EQ(pool.stats().children_lost, 0);
}

TEST(PoolTest, CrashesAmongSoundBuilds) {
  Pool pool(Options(2));
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 5; ++i) {
        const bool crash = (caller + i) % 3 == 0;
        const v1::BuildReply reply = BuildOrDie(
            pool, crash ? FaultRequest(v1::FAULT_COMPILER_CRASH) : MatmulRequest("null"));
        EXPECT_EQ(reply.error(), crash ? v1::COMPILE_HOST_ERROR : v1::NO_ERROR) << reply.message();
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(pool.stats().children_lost, 10);
}

TEST(PoolTest, CancelledCallFreesItsPlace) {
  Pool pool(Options(1));
  std::atomic<bool> stop{false};
  std::thread hanging([&] {
    EXPECT_THAT(
        pool.Build(FaultRequest(v1::FAULT_COMPILER_HANG, 600'000), [&] { return stop.load(); }),
        StatusIs(StatusCode::kCancelled, _));
  });
  // Waits behind the hanging one, and gives up there.
  while (pool.IdlePids().size() != 1 || pool.stats().children_started < 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(pool.Build(MatmulRequest("null"), [] { return true; }),
              StatusIs(StatusCode::kCancelled, HasSubstr("waiting")));
  std::thread behind([&] { ExpectWorks(pool); });
  stop = true;
  hanging.join();
  behind.join();
}

TEST(PoolTest, TooManyWaitingCallsAreRefused) {
  PoolOptions options = Options(1);
  options.max_waiting = 0;
  Pool pool(options);
  EXPECT_THAT(pool.Build(MatmulRequest("null"), Never),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("wait for this builder")));
}

}  // namespace
}  // namespace kiln::builder
