// Tests the pool with real children.
#include "builder/pool.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/process_tree.h"
#include "base/status_testing.h"
#include "builder/memory_limit.h"
#include "builder/requests_testing.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/handwritten/kernel_text.h"

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
  // The last child has worked, so its start is over.
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
  // One child works, one stands by.
  EXPECT_EQ(pool.stats().children_started, 2);
  EXPECT_EQ(pool.stats().children_lost, 0);
}

TEST(PoolTest, FailedCandidatesAndBadRequestsCostNoChild) {
  Pool pool(Options(1));
  const v1::BuildReply reply = BuildOrDie(pool, MatmulRequest("llvm", "[["));
  EXPECT_EQ(reply.error(), v1::INSTANTIATION_ERROR);
  EXPECT_FALSE(reply.message().empty());
  EXPECT_THAT(pool.Build(MatmulRequest("vax"), Never),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("vax")));
  // These names have characters of several bytes, of which a message may quote only the first byte.
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
  // Less than the child has when it begins.
  starved.set_memory_limit_bytes(1 << 20);
  ASSERT_OK_AND_ASSIGN(const BuildOutcome outcome, pool.Build(starved, Never));
  EXPECT_EQ(outcome.reply.error(), v1::COMPILE_HOST_ERROR);
  EXPECT_THAT(outcome.reply.message(), AllOf(HasSubstr("signal 6"), HasSubstr("out of memory")));
  EXPECT_FALSE(outcome.repeatable);
  EXPECT_EQ(BuildOrDie(pool, MatmulRequest("llvm")).error(), v1::NO_ERROR);

  // A build within its limit succeeds, and the next build has its own limit.
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
    // In every other round the children are still dying.
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

// ---- builds that start processes and write files

// A builder whose C compiler is a script, in a temporary folder of its own.
class CompilerTest : public testing::Test {
 protected:
  void UseCompiler(const std::string& script) {
    ASSERT_OK(WriteFile(compiler_, "#!/bin/sh\n" + script));
    ASSERT_EQ(chmod(compiler_.c_str(), 0755), 0);
    setenv("KILN_CC", compiler_.c_str(), 1);
    setenv("TMPDIR", scratch_.path().c_str(), 1);
  }
  void TearDown() override {
    unsetenv("KILN_CC");
    unsetenv("TMPDIR");
  }

  v1::BuildRequest Request(uint32_t timeout_ms) const {
    const std::string space =
        "kernel = \"f\"\noperator = \"x\"\narguments = [\"x\", \"y\"]\n[parameters]\nN = [1]\n";
    const auto text = handwritten::ParseSpaceFile(
        space, handwritten::Language::kC, "f.c", "void f(const float* x, float* y) { *y = *x; }\n");
    KILN_CHECK(text.ok(), "{}", Message(text.status()));
    v1::BuildRequest request;
    request.set_dag("input x: float32[1]\ny[i: 1] = x[i]\n");
    request.set_target("llvm");
    request.set_timeout_ms(timeout_ms);
    request.set_kernel(handwritten::PrintKernelText(*text));
    request.set_steps(handwritten::PrintKernelPoint({.kernel = handwritten::KernelDigest(*text),
                                                     .function = "f",
                                                     .values = {{"N", int64_t{1}}}}));
    return request;
  }

  // Returns the files below the scratch folders of the builds.
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    std::error_code error;
    using Entries = std::filesystem::recursive_directory_iterator;
    for (Entries at(scratch_.path(), error); !error && at != Entries(); at.increment(error)) {
      if (at->is_regular_file(error)) files.push_back(at->path());
    }
    return files;
  }

  // Returns the processes that the script wrote into a file of this name, once they are there.
  std::vector<pid_t> WaitForPids(const std::string& name) const {
    for (int i = 0; i < 3000; ++i) {
      for (const std::string& file : Files()) {
        if (!file.ends_with("/" + name)) continue;
        std::ifstream stream(file);
        std::vector<pid_t> pids;
        for (pid_t pid = 0; stream >> pid;) pids.push_back(pid);
        if (pids.size() == 2) return pids;
      }
      Clock::Real().SleepFor(absl::Milliseconds(10));
    }
    return {};
  }

  TempDir tools_ = *TempDir::Make("pool-test-tools");
  TempDir scratch_ = *TempDir::Make("pool-test");
  const std::string compiler_ = tools_.Join("cc");
};

TEST_F(CompilerTest, ABuildThatRanOutOfTimeLeavesNothingBehind) {
  UseCompiler(
      "sleep 600 &\necho half > $TMPDIR/half\necho $$ $! > $TMPDIR/pids\nsleep 600 2>/dev/null\n");
  Pool pool(Options(1));
  std::vector<pid_t> pids;
  std::thread look([&] { pids = WaitForPids("pids"); });
  const v1::BuildReply reply = BuildOrDie(pool, Request(3000));
  look.join();
  EXPECT_EQ(reply.error(), v1::BUILD_TIMEOUT_ERROR) << reply.message();
  ASSERT_EQ(pids.size(), 2u);
  for (const pid_t pid : pids) EXPECT_TRUE(HasEnded(pid)) << pid;
  EXPECT_THAT(Files(), testing::IsEmpty());
}

TEST_F(CompilerTest, ABuildThatIsCancelledLeavesNothingBehind) {
  UseCompiler("sleep 600 &\necho $$ $! > $TMPDIR/pids\nsleep 600\n");
  Pool pool(Options(1));
  std::vector<pid_t> pids;
  std::atomic<bool> cancelled{false};
  std::thread look([&] {
    pids = WaitForPids("pids");
    cancelled = true;
  });
  const auto outcome = pool.Build(Request(60'000), [&] { return cancelled.load(); });
  look.join();
  EXPECT_THAT(outcome, StatusIs(StatusCode::kCancelled, _));
  ASSERT_EQ(pids.size(), 2u);
  for (const pid_t pid : pids) EXPECT_TRUE(HasEnded(pid)) << pid;
  EXPECT_THAT(Files(), testing::IsEmpty());
}

TEST_F(CompilerTest, ABuildThatIsStoppedOnceIsDoneAgain) {
  UseCompiler("echo $$ $$ > $TMPDIR/pids\nsleep 1\nexec /usr/bin/cc \"$@\"\n");
  Pool pool(Options(1));
  std::thread stop([&] {
    const std::vector<pid_t> pids = WaitForPids("pids");
    if (!pids.empty()) kill(pids[0], SIGSTOP);
  });
  const double start_s = Clock::Real().MonotonicSeconds();
  const v1::BuildReply reply = BuildOrDie(pool, Request(60'000));
  stop.join();
  EXPECT_EQ(reply.error(), v1::NO_ERROR) << reply.message();
  EXPECT_LT(Clock::Real().MonotonicSeconds() - start_s, 30);
  EXPECT_EQ(pool.stats().children_lost, 1);
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
  // The call waits behind the hanging build, and gives up there.
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
