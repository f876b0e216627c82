#include "client/daemon_child.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <chrono>
#include <string>
#include <thread>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "client/core_list.h"

namespace kiln::client {
namespace {

std::vector<int> CoresOfThisThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

TEST(DaemonChildPlaceTest, AChildStaysOnItsCores) {
  const std::vector<int> before = CoresOfThisThread();
  ASSERT_OK(BecomeClusterChild("-", "-"));
  EXPECT_EQ(CoresOfThisThread(), before);
  const std::vector<int> last = {before.back()};
  ASSERT_OK(BecomeClusterChild("-", CoreListText(last)));
  EXPECT_EQ(CoresOfThisThread(), last);
  // A control group may have taken the cores away since.
  testing::internal::CaptureStderr();
  ASSERT_OK(BecomeClusterChild("-", "65535"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("cannot stay on the cores 65535"));
  EXPECT_EQ(CoresOfThisThread(), last);
  ASSERT_OK(BecomeClusterChild("-", CoreListText(before)));
  EXPECT_EQ(CoresOfThisThread(), before);
}

TEST(DaemonChildPlaceTest, AChildSaysThatItsLogCannotBeWritten) {
  EXPECT_THAT(BecomeClusterChild("/there/is/no/such/folder/log", "-"),
              StatusIs(StatusCode::kNotFound, testing::HasSubstr("cannot write")));
}

// Stands in for a daemon that takes a moment to end: it writes a line for each SIGTERM. Its
// arguments are cluster-child LOG CORES DAEMON --listen ADDRESS --port-file FILE.
constexpr char kSlowDaemon[] = R"(#!/bin/sh
trap 'echo told to end >> "$2"; told=1' TERM
echo 4711 > "$8"
while [ -z "$told" ]; do sleep 0.02; done
for moment in 1 2 3 4 5 6 7 8 9 10; do sleep 0.02; done
)";

class DaemonChildTest : public testing::Test {
 protected:
  DaemonChildTest() {
    KILN_CHECK(WriteFileAtomically(folder_.Join("daemon"), kSlowDaemon, 0700).ok());
  }

  DaemonChild Launched() {
    DaemonChild child({.executable = folder_.Join("daemon"),
                       .daemon = "builder",
                       .port_file = folder_.Join("port"),
                       .log = folder_.Join("log")});
    KILN_CHECK(child.Launch().ok());
    KILN_CHECK(child.WaitUntilServes([] { return false; }).ok());
    return child;
  }
  std::string Log() { return ReadFile(folder_.Join("log"), 4096).value_or(""); }

  const TempDir folder_ = *TempDir::Make("daemon-child-test");
};

// A second signal has its default action: it ends a daemon that has not removed its files yet.
TEST_F(DaemonChildTest, IsToldToEndOnce) {
  DaemonChild child = Launched();
  EXPECT_EQ(child.Address(), "127.0.0.1:4711");
  child.AskToStop();
  while (Log().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  child.AskToStop();
  child.Stop(absl::Seconds(30));
  EXPECT_FALSE(child.launched());
  EXPECT_EQ(Log(), "told to end\n");
}

TEST_F(DaemonChildTest, IsToldAgainAfterAnotherStart) {
  DaemonChild child = Launched();
  child.Stop(absl::Seconds(30));
  ASSERT_OK(child.Launch());
  ASSERT_OK(child.WaitUntilServes([] { return false; }));
  child.Stop(absl::Seconds(30));
  EXPECT_EQ(Log(), "told to end\ntold to end\n");
}

}  // namespace
}  // namespace kiln::client
