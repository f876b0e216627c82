#include "base/process/file_access.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <thread>

#include "base/file/fd.h"
#include "base/file/file.h"
#include "base/process/process_guard.h"
#include "base/process/subprocess.h"
#include "base/process/system_call_filter.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

class FileAccessTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!CanRestrictFiles()) GTEST_SKIP() << "this kernel has no Landlock";
    ASSERT_OK(MakeDirs(folder_.Join("read")));
    ASSERT_OK(MakeDirs(folder_.Join("write")));
    for (const char* name : {"read/file", "write/file", "file"}) {
      ASSERT_OK(WriteFile(folder_.Join(name), "text"));
    }
    access_ = {.read = {folder_.Join("read"), folder_.Join("none")},
               .write = {folder_.Join("write")}};
  }

  TempDir folder_ = *TempDir::Make("file-access-test");
  FileAccess access_;
};

TEST_F(FileAccessTest, OnlyWhatIsNamedCanBeOpened) {
  const int memory = memfd_create("memory", MFD_CLOEXEC);
  ASSERT_OK(RunRestricted(access_, [&] {
    EXPECT_OK(ReadFile(folder_.Join("read/file")));
    EXPECT_OK(ReadFile(folder_.Join("write/file")));
    EXPECT_OK(WriteFile(folder_.Join("write/other"), "text"));
    EXPECT_OK(RemoveFile(folder_.Join("write/other")));
    EXPECT_OK(ReadFile(fmt::format("/proc/self/fd/{}", memory)));
    for (const std::string& path :
         {folder_.Join("file"), folder_.Join("read/../file"), std::string("/proc/self/environ"),
          std::string("/dev/zero"), std::string("/etc/passwd")}) {
      EXPECT_THAT(ReadFile(path, 64), StatusIs(StatusCode::kPermissionDenied, testing::_)) << path;
    }
    EXPECT_FALSE(WriteFile(folder_.Join("read/file"), "").ok());
    EXPECT_FALSE(WriteFile(folder_.Join("new"), "").ok());
    EXPECT_FALSE(RemoveFile(folder_.Join("read/file")).ok());
  }));
  close(memory);
  // The other threads are not restricted.
  EXPECT_OK(ReadFile(folder_.Join("file")));
}

TEST_F(FileAccessTest, AChildInheritsTheRestrictionsOfItsThread) {
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", "cat read/file file; echo done"};
  options.argv[2] = fmt::format("cat {0}/read/file {0}/file; echo done", folder_.path());
  access_.read = {"/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", folder_.Join("read")};
  // The child's standard input.
  access_.write.emplace_back("/dev/null");
  options.confine = [&] { return RestrictFiles(access_); };
  ASSERT_OK_AND_ASSIGN(const RunResult result, RunToEnd(options));
  EXPECT_EQ(result.output, "textdone\n");
  EXPECT_THAT(result.error, HasSubstr("Permission denied"));
  options.confine = [] { return Internal("not today"); };
  EXPECT_THAT(RunToEnd(options), StatusIs(StatusCode::kInternal, "not today"));
}

TEST(SystemCallFilterTest, RefusesInAChildWhatItsThreadHasGivenUp) {
  if (!SystemCallFilter::Works()) GTEST_SKIP() << "no seccomp here";
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", "echo written; kill -0 $$ || echo refused"};
  options.confine = [] {
    SystemCallFilter filter(SystemCallFilter::OtherCalls::kAllowed);
    filter.Refuse(SYS_kill);
    return filter.Install(SystemCallFilter::Threads::kThis);
  };
  ASSERT_OK_AND_ASSIGN(const RunResult result, RunToEnd(options));
  EXPECT_EQ(result.output, "written\nrefused\n");
  EXPECT_EQ(kill(getpid(), 0), 0);
}

#ifdef __x86_64__
// Makes a call of 32-bit programs, getpid, on a thread beside the first.
void MakeForeignCall() {
  std::thread([] {
    int64_t result = 20;
    asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  }).join();
}

int WaitStatusOf(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

TEST(SystemCallFilterTest, ACallOfAnotherArchitectureEndsTheProcess) {
  if (!SystemCallFilter::Works()) GTEST_SKIP() << "no seccomp here";
  if (WaitStatusOf(MakeForeignCall) != 0) GTEST_SKIP() << "this kernel runs no 32-bit programs";
  const int status = WaitStatusOf([] {
    SystemCallFilter filter(SystemCallFilter::OtherCalls::kAllowed);
    filter.Refuse(SYS_ptrace);
    if (!filter.Install(SystemCallFilter::Threads::kAll).ok()) _exit(1);
    MakeForeignCall();
  });
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
}
#endif

TEST(ProcessGuardTest, AHiddenProcessStaysHiddenAndGoesFirst) {
  const pid_t child = fork();
  if (child == 0) {
    HideProcess();
    SetOomScore(321);
    const auto score = ReadFile("/proc/self/oom_score_adj");
    _exit(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 && score.ok() && *score == "321\n" ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace kiln
