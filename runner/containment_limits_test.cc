// Runs programs that try to learn what they must not: each line of docs/runner.md's table, under
// each kind of user that a runner may have. These are root, root that keeps its user for programs,
// and another user. The daemon is a fork of this test, since users cannot be changed back.
#include <grp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/file/fd.h"
#include "base/file/file.h"
#include "base/process/file_access.h"
#include "base/process/namespaces.h"
#include "base/process/process_guard.h"
#include "base/process/sandbox.h"
#include "base/process/system_call_filter.h"
#include "base/status_testing.h"
#include "runner/containment.h"
#include "runner/device_files.h"
#include "runner/device_slot.h"
#include "runner/device_slot_testing.h"

namespace kiln::runner {
namespace {

constexpr uid_t kOrdinaryUser = 23456;

enum class User { kAsItIs, kKeepingItsUser, kOrdinary };
struct Case {
  User user;
  // False: a filter forbids namespaces, as containers do.
  bool namespaces;
};

class ContainmentLimitsTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const std::string missing = MissingContainment({});
    if (missing.find("seccomp") != std::string::npos) GTEST_SKIP() << missing;
    if (user() != User::kAsItIs && geteuid() != 0) GTEST_SKIP() << "for root, who is others";
    // The copy is in a folder from which another user can start it.
    ASSERT_OK_AND_ASSIGN(const std::string program, ReadFile("runner/kiln_runner"));
    ASSERT_OK(WriteFileAtomically(runner_, program, 0777));
    chmod(folder_.path().c_str(), 0755);
    chmod(runner_.c_str(), 0755);
  }

  static User user() { return GetParam().user; }

  // Called by the daemon, because users differ in what they may do.
  DeviceSlotOptions Options() const {
    DeviceSlotOptions options;
    options.child_command = {runner_, "--child", "--device", "cpu", "--threads", "2"};
    const bool keeps = user() == User::kKeepingItsUser;
    if (keeps) options.child_command.push_back("--no-drop-privileges");
    const SandboxFound found = FindSandbox({.view = CpuFiles(), .nobody = !keeps});
    for (const std::string& argument : ArgumentsOf(found.sandbox)) {
      options.child_command.push_back(argument);
    }
    return options;
  }

  static Status ForbidNamespaces() {
    SystemCallFilter filter(SystemCallFilter::OtherCalls::kAllowed);
    filter.Refuse(SYS_unshare);
    return filter.Install(SystemCallFilter::Threads::kThis);
  }

  // Returns the text that `daemon` returns in a process of that user.
  std::string In(const std::function<std::string()>& daemon) {
    auto pipe = MakePipe();
    KILN_CHECK(pipe.ok());
    const pid_t pid = fork();
    if (pid == 0) {
      const bool other = user() == User::kOrdinary;
      HideProcess();
      const bool changed = !other || (setgroups(0, nullptr) == 0 &&
                                      setresgid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) == 0 &&
                                      setresuid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) == 0);
      const bool ready = changed && (GetParam().namespaces || ForbidNamespaces().ok());
      const std::string said = ready ? daemon() : "no other user";
      [[maybe_unused]] const ssize_t written = write(pipe->write.get(), said.data(), said.size());
      _exit(0);
    }
    pipe->write.Reset();
    std::string said(4096, '\0');
    const ssize_t got = read(pipe->read.get(), said.data(), said.size());
    said.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    waitpid(pid, nullptr, 0);
    return said;
  }

  // The program runs several times, because the contents of a heap are a matter of chance.
  std::string Measure(const v1::MeasureRequest& request) {
    return In([&]() -> std::string {
      DeviceSlot slot(Options());
      for (int i = 0; i < 3; ++i) {
        const auto reply = slot.Measure(request, [] { return false; });
        if (!reply.ok()) return reply.status().ToString();
        if (reply->result().error() != v1::NO_ERROR) return reply->result().message();
        if (slot.stats().children_lost != 0) return "a child was lost";
      }
      return "right";
    });
  }

  TempDir folder_ = *TempDir::Make("who-may-what-test");
  const std::string runner_ = folder_.Join("kiln_runner");
};

TEST_P(ContainmentLimitsTest, AProgramLearnsNothingOnceItIsLoaded) {
  const std::string said = Measure(Request("spy"));
  if (said == "no other user") GTEST_SKIP() << "this container has no other user";
  EXPECT_EQ(said, "right");
}

TEST_P(ContainmentLimitsTest, AProgramLearnsNothingWhileItIsLoaded) {
  if (!CanRestrictFiles()) GTEST_SKIP() << "this kernel has no Landlock";
  const std::string said = Measure(Request("early_spy"));
  if (said == "no other user") GTEST_SKIP() << "this container has no other user";
  EXPECT_EQ(said, "right");
}

TEST_P(ContainmentLimitsTest, AProgramChangesNothing) {
  const std::string said = Measure(Request("hostile"));
  if (said == "no other user") GTEST_SKIP() << "this container has no other user";
  const bool stays_root = user() == User::kKeepingItsUser || !NobodyExists();
  EXPECT_TRUE(said == "right" || (stays_root && said == "the program returned 64, expected 0"))
      << said;
}

std::string NameOfCase(const testing::TestParamInfo<Case>& info) {
  const char* const names[] = {"AsItIs", "KeepingItsUser", "Ordinary"};
  return std::string(names[static_cast<int>(info.param.user)]) +
         (info.param.namespaces ? "" : "WithoutNamespaces");
}

INSTANTIATE_TEST_SUITE_P(All, ContainmentLimitsTest,
                         testing::Values(Case{User::kAsItIs, true}, Case{User::kAsItIs, false},
                                         Case{User::kKeepingItsUser, true},
                                         Case{User::kOrdinary, true}, Case{User::kOrdinary, false}),
                         NameOfCase);

}  // namespace
}  // namespace kiln::runner
