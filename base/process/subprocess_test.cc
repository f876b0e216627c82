// The test runs itself as the child: main() at the bottom dispatches on the first argument.
#include "base/process/subprocess.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/process_tree.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Stream = SubprocessOptions::Stream;

SubprocessOptions Child(std::vector<std::string> args) {
  SubprocessOptions options;
  options.argv = {*CurrentExecutable()};
  options.argv.insert(options.argv.end(), args.begin(), args.end());
  return options;
}

SubprocessOptions Shell(const std::string& script) {
  SubprocessOptions options;
  options.argv = {"sh", "-c", script};
  return options;
}

// Returns true if the process is gone within 5 seconds.
bool Gone(pid_t pid) {
  for (int i = 0; i < 500 && !HasEnded(pid); ++i) Clock::Real().SleepFor(absl::Milliseconds(10));
  return HasEnded(pid);
}

// Reads from a pipe until the newline by which the child says that it is ready.
std::string ReadLine(int fd) {
  std::string line;
  for (char c; read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

TEST(SubprocessTest, IsAmongTheChildrenOfItsProcess) {
  auto child = Subprocess::Spawn(Child({"--spin"}));
  ASSERT_TRUE(child.ok());
  EXPECT_THAT(ChildrenOf(getpid()), testing::Contains(child->pid()));
  child->Kill();
  ASSERT_TRUE(child->Wait().ok());
  EXPECT_THAT(ChildrenOf(getpid()), testing::Not(testing::Contains(child->pid())));
}

TEST(SubprocessTest, OutputErrorAndExitStatus) {
  ASSERT_OK_AND_ASSIGN(RunResult result, RunToEnd(Shell("echo out; echo err >&2; exit 3")));
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.error, "err\n");
  EXPECT_FALSE(result.exit.ok());
  EXPECT_EQ(result.exit.ToString(), "exit status 3");
}

TEST(SubprocessTest, MuchInputAndOutputAtOnce) {
  // No two blocks of the text are equal, so that a block in a wrong place is seen.
  std::string text;
  for (int line = 0; text.size() < (3 << 20); ++line) text += std::to_string(line) + "\n";
  ASSERT_OK_AND_ASSIGN(RunResult result, RunToEnd(Shell("cat"), text));
  EXPECT_TRUE(result.exit.ok());
  EXPECT_TRUE(result.output == text) << result.output.size() << " bytes of " << text.size();
}

TEST(SubprocessTest, AChildThatDoesNotReadItsInput) {
  ASSERT_OK_AND_ASSIGN(RunResult result, RunToEnd(Shell("exit 0"), std::string(3 << 20, 'x')));
  EXPECT_TRUE(result.exit.ok());
}

TEST(SubprocessTest, OutputBeyondTheLimitIsDropped) {
  ASSERT_OK_AND_ASSIGN(RunResult result, RunToEnd(Shell("head -c 1000000 /dev/zero"), {},
                                                  absl::InfiniteDuration(), 1000));
  EXPECT_TRUE(result.exit.ok());
  EXPECT_EQ(result.output.size(), 1000u);
}

TEST(SubprocessTest, NoSuchProgram) {
  SubprocessOptions options;
  options.argv = {"/nonexistent/program"};
  EXPECT_THAT(Subprocess::Spawn(options),
              StatusIs(StatusCode::kNotFound,
                       "cannot start /nonexistent/program: No such file or directory"));
  EXPECT_THAT(Subprocess::Spawn({}), StatusIs(StatusCode::kInvalidArgument, testing::_));
}

TEST(SubprocessTest, DescribesSignals) {
  ASSERT_OK_AND_ASSIGN(RunResult result, RunToEnd(Shell("kill -SEGV $$")));
  EXPECT_EQ(result.exit.signal, SIGSEGV);
  EXPECT_THAT(result.exit.ToString(), HasSubstr("killed by signal 11 (Segmentation fault)"));
}

TEST(SubprocessTest, EnvironmentIsAddedToOrReplaced) {
  setenv("SUBPROCESS_TEST_KEPT", "kept", 1);
  setenv("SUBPROCESS_TEST_CHANGED", "old", 1);
  SubprocessOptions options =
      Shell("echo $SUBPROCESS_TEST_KEPT $SUBPROCESS_TEST_CHANGED; env | grep -c TEST_CHANGED");
  options.env = {"SUBPROCESS_TEST_CHANGED=new"};
  ASSERT_OK_AND_ASSIGN(RunResult result, RunToEnd(options));
  EXPECT_EQ(result.output, "kept new\n1\n");
  options.argv[0] = "/bin/sh";
  options.clear_env = true;
  ASSERT_OK_AND_ASSIGN(result, RunToEnd(options));
  EXPECT_THAT(result.output, testing::StartsWith("new\n"));
}

TEST(SubprocessTest, TimeoutKillsTheWholeGroup) {
  const double start = Clock::Real().MonotonicSeconds();
  EXPECT_THAT(RunToEnd(Shell("sleep 60 & sleep 60; wait"), {}, absl::Milliseconds(200)),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("sh still ran after 0.2 s")));
  EXPECT_LT(Clock::Real().MonotonicSeconds() - start, 10);
}

TEST(SubprocessTest, AnOrphanThatHoldsThePipesDoesNotHangUs) {
  ASSERT_OK_AND_ASSIGN(RunResult result, RunToEnd(Shell("sleep 60 & echo done")));
  EXPECT_EQ(result.output, "done\n");
  EXPECT_TRUE(result.exit.ok());
}

TEST(SubprocessTest, WaitTimesOutAndCanBeRepeated) {
  SubprocessOptions options = Shell("read line; exit 7");
  options.input = Stream::kPipe;
  ASSERT_OK_AND_ASSIGN(Subprocess child, Subprocess::Spawn(options));
  EXPECT_THAT(child.Wait(absl::Milliseconds(20)),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("still runs after 0.02 s")));
  EXPECT_TRUE(child.Running());
  child.input().Reset();
  ASSERT_OK_AND_ASSIGN(ExitStatus exit, child.Wait());
  EXPECT_EQ(exit.code, 7);
  EXPECT_FALSE(child.Running());
  ASSERT_OK_AND_ASSIGN(exit, child.Wait());
  EXPECT_EQ(exit.code, 7);
  // Does nothing now.
  child.Kill();
}

TEST(SubprocessTest, KillFromAnotherThreadEndsAWait) {
  ASSERT_OK_AND_ASSIGN(Subprocess child, Subprocess::Spawn(Shell("sleep 60")));
  std::jthread killer([&] {
    Clock::Real().SleepFor(absl::Milliseconds(50));
    child.Kill();
  });
  ASSERT_OK_AND_ASSIGN(ExitStatus exit, child.Wait());
  EXPECT_EQ(exit.ToString(), "killed by signal 9 (Killed)");
}

TEST(SubprocessTest, StopIsGentleFirst) {
  SubprocessOptions options = Shell("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done");
  options.output = Stream::kPipe;
  ASSERT_OK_AND_ASSIGN(Subprocess child, Subprocess::Spawn(options));
  EXPECT_EQ(ReadLine(child.output().get()), "ready");
  ASSERT_OK_AND_ASSIGN(ExitStatus exit, child.Stop(absl::Seconds(5)));
  EXPECT_EQ(exit.code, 5);

  options = Shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
  options.output = Stream::kPipe;
  ASSERT_OK_AND_ASSIGN(Subprocess deaf, Subprocess::Spawn(options));
  EXPECT_EQ(ReadLine(deaf.output().get()), "ready");
  ASSERT_OK_AND_ASSIGN(exit, deaf.Stop(absl::Milliseconds(50)));
  EXPECT_EQ(exit.signal, SIGKILL);
}

TEST(SubprocessTest, DestructorLeavesNothingBehind) {
  pid_t leader = 0, member = 0;
  {
    SubprocessOptions options = Shell("sleep 60 & echo $!; wait");
    options.output = Stream::kPipe;
    ASSERT_OK_AND_ASSIGN(Subprocess child, Subprocess::Spawn(options));
    leader = child.pid();
    member = std::stoi(ReadLine(child.output().get()));
    EXPECT_FALSE(HasEnded(member));
  }
  EXPECT_TRUE(Gone(leader));
  EXPECT_TRUE(Gone(member));
}

TEST(SubprocessTest, ChildGetsOnlyTheDescriptorsItIsGiven) {
  // A descriptor without close-on-exec, which some library might have left.
  UniqueFd leaked(open("/dev/null", O_RDONLY));
  ASSERT_TRUE(leaked.valid());
  ASSERT_OK_AND_ASSIGN(Pipe first, MakePipe());
  ASSERT_OK_AND_ASSIGN(Pipe second, MakePipe());
  SubprocessOptions options = Child({"--say-on-4-and-list"});
  // The higher descriptor comes first, so that a careless order of dup2 would lose one.
  options.inherited_fds = {second.write.get(), first.write.get()};
  ASSERT_OK_AND_ASSIGN(RunResult result, RunToEnd(options));
  EXPECT_EQ(result.exit.ToString(), "exit status 0");
  EXPECT_EQ(result.output, "0 1 2 3 4 ");
  first.write.Reset();
  EXPECT_EQ(ReadLine(first.read.get()), "four");
}

TEST(SubprocessTest, InheritedDescriptorThatAlreadyHasTheRightNumber) {
  // Occupy 3 and 4 and pass them crosswise.
  UniqueFd three(fcntl(0, F_DUPFD_CLOEXEC, 3)), four(fcntl(0, F_DUPFD_CLOEXEC, 3));
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  ASSERT_EQ(dup3(pipe.write.get(), three.get(), O_CLOEXEC), three.get());
  SubprocessOptions options = Child({"--say-on-4-and-list"});
  options.inherited_fds = {four.get(), three.get()};
  ASSERT_OK_AND_ASSIGN(RunResult result, RunToEnd(options));
  EXPECT_EQ(result.exit.ToString(), "exit status 0");
  pipe.write.Reset();
  three.Reset();
  EXPECT_EQ(ReadLine(pipe.read.get()), "four");
}

TEST(SubprocessTest, SignalMaskAndActionsAreDefault) {
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, &old);
  ASSERT_OK_AND_ASSIGN(Subprocess child, Subprocess::Spawn(Shell("sleep 60")));
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  child.Kill(SIGTERM);
  ASSERT_OK_AND_ASSIGN(ExitStatus exit, child.Wait(absl::Seconds(10)));
  EXPECT_EQ(exit.signal, SIGTERM);
}

TEST(SubprocessTest, MemoryLimit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers map terabytes";
#endif
  SubprocessOptions options = Child({"--allocate"});
  ASSERT_OK_AND_ASSIGN(RunResult result, RunToEnd(options, "go"));
  EXPECT_EQ(result.exit.code, 0);
  options.limits.data_bytes = int64_t{64} << 20;
  ASSERT_OK_AND_ASSIGN(result, RunToEnd(options, "go"));
  EXPECT_EQ(result.exit.code, 9);
}

TEST(SubprocessTest, CpuLimit) {
  SubprocessOptions options = Child({"--spin"});
  options.limits.cpu_s = 1;
  ASSERT_OK_AND_ASSIGN(RunResult result, RunToEnd(options, {}, absl::Seconds(30)));
  EXPECT_EQ(result.exit.signal, SIGXCPU) << result.exit.ToString();
  EXPECT_GT(result.exit.cpu_s, 0.5);
  EXPECT_GT(result.exit.max_rss_bytes, 0);
}

TEST(SubprocessTest, AnImpossibleLimitIsAnErrorAndLeavesNoChild) {
  SubprocessOptions options = Shell("sleep 60");
  // Above the limit that the kernel allows anyone.
  options.limits.open_files = int64_t{1} << 40;
  EXPECT_THAT(Subprocess::Spawn(options),
              StatusIs(testing::_, HasSubstr("cannot set the open files limit of process")));
}

TEST(SubprocessTest, DiesWithItsParent) {
  // This test starts "parent", which starts "child"; then the parent is killed hard.
  SubprocessOptions options = Child({"--parent"});
  options.output = Stream::kPipe;
  ASSERT_OK_AND_ASSIGN(Subprocess parent, Subprocess::Spawn(options));
  const std::string line = ReadLine(parent.output().get());
  const pid_t child = std::stoi(line);
  EXPECT_FALSE(HasEnded(child));
  parent.Kill();
  ASSERT_OK(parent.Wait());
  EXPECT_TRUE(Gone(child));
}

TEST(SubprocessTest, OutlivesTheThreadThatStartedIt) {
  SubprocessOptions options = Child({"--die-with-parent"});
  options.output = Stream::kPipe;
  StatusOr<Subprocess> child = Internal("not started");
  std::thread([&] { child = Subprocess::Spawn(options); }).join();
  ASSERT_OK(child);
  EXPECT_EQ(ReadLine(child->output().get()), "ready");
  Clock::Real().SleepFor(absl::Milliseconds(100));
  EXPECT_TRUE(child->Running());
  child->Kill(SIGTERM);
  ASSERT_OK_AND_ASSIGN(ExitStatus exit, child->Wait());
  EXPECT_EQ(exit.signal, SIGTERM);
}

TEST(SubprocessTest, ManyAtOnceFromManyThreads) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 10; ++i) {
        StatusOr<RunResult> result = RunToEnd(Shell(fmt::format("echo {}; exit {}", t, i)));
        ASSERT_OK(result);
        EXPECT_EQ(result->exit.code, i);
        EXPECT_EQ(result->output, fmt::format("{}\n", t));
      }
    });
  }
}

int WriteToFourAndListDescriptors() {
  if (write(4, "four\n", 5) != 5) return 1;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) dprintf(1, "%d ", fd);
  }
  return 0;
}

// Allocates once its input has ended, because limits are set right after the start.
int Allocate() {
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  const size_t size = size_t{256} << 20;
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return 9;
  std::memset(p, 1, size);
  return 0;
}

int Spin() {
  while (getpid() > 0) {
  }
  return 0;
}

int DieWithParentChild() {
  DieWithParent();
  // Ends the child if DieWithParent does not work.
  alarm(60);
  dprintf(1, "ready\n");
  pause();
  return 1;
}

int Parent() {
  SubprocessOptions options = Child({"--die-with-parent"});
  options.output = Stream::kPipe;
  StatusOr<Subprocess> child = Subprocess::Spawn(options);
  if (!child.ok()) return 1;
  if (ReadLine(child->output().get()) != "ready") return 1;
  dprintf(1, "%d\n", child->pid());
  pause();
  return 0;
}

}  // namespace

int RunChild(std::string_view mode) {
  if (mode == "--say-on-4-and-list") return WriteToFourAndListDescriptors();
  if (mode == "--allocate") return Allocate();
  if (mode == "--spin") return Spin();
  if (mode == "--die-with-parent") return DieWithParentChild();
  if (mode == "--parent") return Parent();
  return -1;
}

}  // namespace kiln

int main(int argc, char** argv) {
  if (argc == 2) {
    if (const int code = kiln::RunChild(argv[1]); code >= 0) _exit(code);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
