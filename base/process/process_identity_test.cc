#include "base/process/process_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/process/subprocess.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

constexpr char kRest[] = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n";

TEST(ProcessIdentity, TheNameOfAProgramMayHoldAnything) {
  EXPECT_EQ(*ParseStartTicks(std::string("12 (a) S 1 (b c)) S") + kRest), 4711);
  EXPECT_EQ(ParseStartTicks(std::string("12 (kiln) Z") + kRest).status().code(),
            absl::StatusCode::kNotFound);
  for (const char* bad : {"", "12", "12 (kiln)", "12 (kiln) S 1 2 3"}) {
    EXPECT_EQ(ParseStartTicks(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

Subprocess Sleeper() {
  SubprocessOptions options;
  options.argv = {"sleep", "60"};
  auto process = Subprocess::Spawn(options);
  KILN_CHECK(process.ok());
  return *std::move(process);
}

TEST(ProcessIdentity, ASignalReachesItsProcess) {
  Subprocess sleeper = Sleeper();
  ASSERT_OK_AND_ASSIGN(const ProcessIdentity process, IdentifyProcess(sleeper.pid()));
  EXPECT_TRUE(IsRunning(process));
  EXPECT_OK(SignalProcess(process, SIGUSR1));
  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, sleeper.Wait());
  EXPECT_EQ(exit.signal, SIGUSR1);
  EXPECT_FALSE(IsRunning(process));
  EXPECT_EQ(SignalProcess(process, SIGKILL).code(), absl::StatusCode::kNotFound);
}

// A process that has the number of an earlier one, or of one before the machine was started again.
TEST(ProcessIdentity, NoOtherProcessGetsTheSignal) {
  Subprocess sleeper = Sleeper();
  ASSERT_OK_AND_ASSIGN(const ProcessIdentity process, IdentifyProcess(sleeper.pid()));
  ProcessIdentity earlier = process;
  earlier.start_ticks -= 1;
  ProcessIdentity other_boot = process;
  other_boot.boot_id = "another";
  for (const ProcessIdentity& stale : {earlier, other_boot, ProcessIdentity()}) {
    EXPECT_FALSE(IsRunning(stale));
    EXPECT_EQ(SignalProcess(stale, SIGKILL).code(), absl::StatusCode::kNotFound);
  }
  EXPECT_TRUE(sleeper.Running());
}

}  // namespace
}  // namespace kiln
