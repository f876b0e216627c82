// Each test runs in a fork, which gives up rights that it cannot get back.
#include "runner/containment.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>

#include "base/file/fd.h"
#include "base/process/file_access.h"
#include "base/process/namespaces.h"
#include "base/status_testing.h"

namespace kiln::runner {
namespace {

constexpr int64_t kExtraBytes = int64_t{1} << 30;

// Returns the number, from 1, of the first check that is false; 0: none is.
int FirstFalse(std::initializer_list<bool> checks) {
  int number = 0;
  for (const bool check : checks) {
    ++number;
    if (!check) return number;
  }
  return 0;
}

int ExitOf(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(ContainmentTest, FirstStepLeavesNothingBehindIt) {
  ASSERT_OK_AND_ASSIGN(const Pipe pipe, MakePipe());
  const bool is_root = CanBecomeNobody();
  const int failed = ExitOf([&] {
    const int kept[] = {pipe.write.get()};
    if (!Confine({.cpu_s = 77, .output_bytes = 4096}, kept, kExtraBytes).ok()) return 100;
    rlimit cpu{}, core{}, files{};
    getrlimit(RLIMIT_CPU, &cpu);
    getrlimit(RLIMIT_CORE, &core);
    getrlimit(RLIMIT_NOFILE, &files);
    return FirstFalse({write(pipe.write.get(), "x", 1) == 1, fcntl(pipe.read.get(), F_GETFD) < 0,
                       cpu.rlim_max == 77, core.rlim_max == 0, files.rlim_max <= 1024,
                       !is_root || geteuid() == 65534, !is_root || setuid(0) != 0});
  });
  EXPECT_EQ(failed, 0);
}

TEST(ContainmentTest, RootMayKeepItsPrivileges) {
  if (geteuid() != 0) GTEST_SKIP() << "for root";
  EXPECT_EQ(ExitOf([] {
              if (!Confine({.drop_privileges = false}, {}, kExtraBytes).ok()) return 100;
              // The process keeps its user, but not the rights that make it root.
              return FirstFalse(
                  {geteuid() == 0, chown("/proc/self", 1, 1) != 0, prctl(PR_CAPBSET_DROP, 0) != 0});
            }),
            0);
}

// The child of a device that opens for root alone stays root and has no capabilities.
TEST(ContainmentTest, RootWithoutCapabilitiesIsConfinedToo) {
  if (geteuid() != 0) GTEST_SKIP() << "for root";
  EXPECT_EQ(ExitOf([] {
              if (!DropCapabilities().ok()) return 100;
              if (!Confine({}, {}, kExtraBytes).ok()) return 101;
              return FirstFalse({geteuid() == 0, chown("/proc/self", 1, 1) != 0});
            }),
            0);
}

TEST(ContainmentTest, SecondStepForbidsMostCalls) {
  const std::string missing = MissingContainment({});
  if (missing.find("seccomp") != std::string::npos) GTEST_SKIP() << missing;
  const int failed = ExitOf([&] {
    if (!Confine({}, {}, kExtraBytes).ok() || !ForbidSystemCalls().ok()) return 100;
    const bool forks = fork() >= 0;
    const bool kills = kill(getppid(), 0) == 0;
    const bool restricted = CanRestrictFiles();
    return FirstFalse({!forks, !kills, open("/etc/ld.so.cache", O_RDONLY) >= 0,
                       open("/proc/self/stat", O_RDONLY) < 0 || !restricted,
                       open("/tmp/kiln-written", O_WRONLY | O_CREAT, 0600) < 0, errno == EPERM,
                       socket(AF_UNIX, SOCK_STREAM, 0) < 0, setsid() < 0, kill(getpid(), 0) == 0,
                       kill(getpid(), SIGSTOP) < 0, raise(SIGTSTP) != 0});
  });
  EXPECT_EQ(failed, 0);
}

TEST(ContainmentTest, ThirdStepForbidsOpening) {
  ASSERT_OK_AND_ASSIGN(const Pipe loaded, MakePipe());
  ASSERT_OK_AND_ASSIGN(const Pipe go, MakePipe());
  const pid_t pid = fork();
  if (pid == 0) {
    const int kept[] = {loaded.write.get(), go.read.get()};
    char byte = 0;
    const bool contained = Confine({}, kept, kExtraBytes).ok() && ForbidSystemCalls().ok();
    const bool opened = open("/etc/ld.so.cache", O_RDONLY) >= 0;
    const bool told =
        write(loaded.write.get(), &byte, 1) == 1 && read(go.read.get(), &byte, 1) == 1;
    const rlimit more{64, 64};
    _exit(FirstFalse({contained, opened, told, open("/etc/ld.so.cache", O_RDONLY) < 0,
                      setrlimit(RLIMIT_NOFILE, &more) != 0,
                      write(loaded.write.get(), &byte, 1) == 1}));
  }
  char byte = 0;
  ASSERT_EQ(read(loaded.read.get(), &byte, 1), 1);
  EXPECT_OK(ForbidOpening(pid));
  ASSERT_EQ(write(go.write.get(), &byte, 1), 1);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(ContainmentTest, AbortStillKills) {
  EXPECT_EQ(ExitOf([] {
              if (!Confine({}, {}, kExtraBytes).ok() || !ForbidSystemCalls().ok()) return 100;
              abort();
              return 0;
            }),
            1000 + SIGABRT);
}

// The grandchild has a session of its own and outlives its parent, so its group does not lead to
// it.
TEST(OrphansTest, EndWhoeverTheirParentWas) {
  ASSERT_OK_AND_ASSIGN(const Pipe pipe, MakePipe());
  const int failed = ExitOf([&] {
    AdoptOrphans();
    const pid_t child = fork();
    if (child == 0) {
      if (fork() == 0) {
        setsid();
        const pid_t own = getpid();
        [[maybe_unused]] const ssize_t written = write(pipe.write.get(), &own, sizeof(own));
        sleep(600);
      }
      _exit(0);
    }
    pid_t orphan = 0;
    [[maybe_unused]] const ssize_t got = read(pipe.read.get(), &orphan, sizeof(orphan));
    const bool lived = kill(orphan, 0) == 0;
    EndOrphans();
    return FirstFalse({orphan > 0, lived, kill(orphan, 0) != 0, waitpid(-1, nullptr, 0) < 0});
  });
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace kiln::runner
