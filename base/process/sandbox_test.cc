// A table of attacks by a child that is in its sandbox, as the strongest attacker there is: code
// that took over a compiler or a driver. The daemon is a fork of this test that has become one of
// three users; namespaces and Landlock work for it, or a filter forbids them as containers do.
//
// The test starts itself as the child. All that the attacks may harm is in a folder of the test.
#include "base/process/sandbox.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/file/file.h"
#include "base/process/file_access.h"
#include "base/process/process_guard.h"
#include "base/process/subprocess.h"
#include "base/process/system_call_filter.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

constexpr uid_t kOrdinaryUser = 23456;
constexpr int64_t kScratchBytes = 1 << 20;

// ---- the child ------------------------------------------------------------------------------

// A socket of the daemon.
constexpr int kDaemonFd = 3;

struct Victim {
  pid_t daemon = 0;
  // A file of the daemon's, and a port that it listens on.
  std::string key;
  int port = 0;
};

bool Connects(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return false;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

bool ConnectsToFile(const std::string& path) {
  const sockaddr_un to = AddressOf(path);
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
}

bool MakesPair(int type) {
  int ends[2];
  return socketpair(AF_UNIX, type, 0, ends) == 0;
}

bool Writes(const std::string& path) {
  const bool writes = WriteFile(path, "").ok();
  if (writes) unlink(path.c_str());
  return writes;
}

bool ChangesAttributes(const std::string& path) {
  const char* const file = path.c_str();
  return chmod(file, 0644) == 0 || chown(file, geteuid(), getegid()) == 0 ||
         utimensat(AT_FDCWD, file, nullptr, 0) == 0 || utimes(file, nullptr) == 0 ||
         setxattr(file, "user.kiln", "x", 1, 0) == 0 || errno != EPERM;
}

bool ShortensFile(const std::string& path) {
  return truncate(path.c_str(), 1) == 0 || open(path.c_str(), O_RDONLY | O_TRUNC) >= 0;
}

int ProcessesListed() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (std::isdigit(entry.path().filename().string()[0]) != 0) ++count;
  }
  return count;
}

bool FillsScratch() {
  const std::string path = JoinPath(std::getenv("TMPDIR"), "filled");
  const bool fills = WriteFile(path, std::string(2 * kScratchBytes, 'x')).ok();
  unlink(path.c_str());
  return fills;
}

bool MakesNamespaces() {
  const pid_t pid = static_cast<pid_t>(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  if (pid == 0) _exit(0);
  return pid > 0 || unshare(CLONE_NEWUSER) == 0;
}

// Starts a process that leaves its group and its parent.
bool LeavesAnOrphan() {
  const std::string path = JoinPath(std::getenv("TMPDIR"), "orphan");
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    [[maybe_unused]] const Status written = WriteFile(path, "here");
    sleep(2);
    _exit(0);
  }
  for (int i = 0; i < 500 && !FileExists(path); ++i) usleep(10000);
  return FileExists(path);
}

// Prints the name of each attack that worked.
void Attack(const Victim& victim) {
  const auto report = [](const char* name, bool worked) {
    if (worked) dprintf(1, "%s\n", name);
  };
  const std::string proc = fmt::format("/proc/{}/", victim.daemon);
  report("opens a socket", socket(AF_INET, SOCK_STREAM, 0) >= 0);
  report("opens a socket", socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
  report("opens a socket", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
  report("connects to a file", ConnectsToFile(victim.key + ".socket"));
  report("makes sockets that connect anew", MakesPair(SOCK_DGRAM) || MakesPair(SOCK_RAW));
  report("cannot make a pair of sockets", !MakesPair(SOCK_STREAM) || !MakesPair(SOCK_SEQPACKET));
  report("connects to the daemon", Connects(victim.port));
  report("reads the environment", ReadFile(proc + "environ").ok());
  report("reads the memory", open((proc + "mem").c_str(), O_RDONLY) >= 0);
  report("reads the keys", ReadFile(victim.key).ok());
  report("has the secret in a variable", std::getenv("FARM_SECRET") != nullptr);
  report("lists processes", ProcessesListed() > 3);
  report("signals the daemon", kill(victim.daemon, 0) == 0);
  report("traces the daemon", ptrace(PTRACE_ATTACH, victim.daemon, 0, 0) == 0);
  report("writes outside", Writes(victim.key + ".new"));
  report("writes outside", Writes("/tmp/kiln-sandbox-test"));
  report("writes outside", Writes("/usr/lib/kiln-sandbox-test"));
  report("changes attributes", FileExists(victim.key) && ChangesAttributes(victim.key));
  report("shortens a file", ShortensFile(victim.key));
  report("sets up the machine", open("/proc/sys/kernel/core_pattern", O_WRONLY) >= 0);
  report("sets up the machine", open("/proc/sysrq-trigger", O_WRONLY) >= 0);
  report("fills the disk", FillsScratch());
  report("loads a library", dlopen((victim.key + ".so").c_str(), RTLD_NOW) != nullptr);
  report("is root", geteuid() == 0 || setuid(0) == 0);
  report("makes namespaces", MakesNamespaces());
  report("has capabilities", prctl(PR_CAPBSET_DROP, 0) == 0);
  report("cannot use its scratch", !WriteFile(JoinPath(std::getenv("TMPDIR"), "own"), "text").ok());
  report("cannot leave an orphan", !LeavesAnOrphan());
  // The daemon receives this process's user with the byte.
  report("cannot write to the daemon", write(kDaemonFd, "x", 1) != 1);
}

int Child(int argc, char** argv) {
  DieWithParent();
  Sandbox sandbox;
  Victim victim;
  std::string end;
  CLI::App app;
  AddSandboxOptions(app, sandbox);
  app.add_option("--daemon", victim.daemon);
  app.add_option("--key", victim.key);
  app.add_option("--port", victim.port);
  app.add_option("--end", end);
  CLI11_PARSE(app, argc, argv);
  sandbox.view.scratch_bytes = kScratchBytes;
  const Status entered = EnterSandbox(sandbox);
  if (!entered.ok()) {
    dprintf(1, "not entered: %s\n", std::string(Message(entered)).c_str());
    return 1;
  }
  HideProcess();
  if (end == "abort") abort();
  if (end == "seven") return 7;
  if (end == "connect") return ConnectsToFile(victim.key + ".socket") ? 7 : 8;
  Attack(victim);
  return 0;
}

// ---- the daemon -----------------------------------------------------------------------------

// Root without CAP_SYS_ADMIN is the root of most containers.
enum class User { kAsItIs, kWithoutAdmin, kOrdinary };
struct Case {
  User user;
  bool namespaces;
  bool landlock = true;
};

// Forbids namespaces as the default profile of container runtimes does, and Landlock as old ones
// do.
Status Forbid(bool namespaces, bool landlock) {
  constexpr uint32_t kCreateRuleset = 444;
  SystemCallFilter filter(SystemCallFilter::OtherCalls::kAllowed);
  if (namespaces) filter.Refuse(SYS_unshare);
  if (landlock) filter.Refuse(kCreateRuleset);
  return filter.Install(SystemCallFilter::Threads::kThis);
}

bool GivesUpAdministration() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3] = {};
  if (prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN) != 0) return false;
  if (syscall(SYS_capget, &header, held) != 0) return false;
  auto& part = held[CAP_TO_INDEX(CAP_SYS_ADMIN)];
  part.effective &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
  part.permitted &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
  return syscall(SYS_capset, &header, held) == 0;
}

bool Become(User user) {
  if (user == User::kAsItIs) return true;
  if (user == User::kWithoutAdmin) return GivesUpAdministration();
  return setgroups(0, nullptr) == 0 &&
         setresgid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) == 0 &&
         setresuid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) == 0;
}

// A socket that listens on the loopback, and its port.
std::pair<UniqueFd, int> Listen() {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(at);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&at), bytes) != 0 || listen(fd.get(), 1) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &bytes) != 0) {
    return {};
  }
  return {std::move(fd), ntohs(at.sin_port)};
}

// A socket that listens at a file.
UniqueFd ListenAt(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un at = AddressOf(path);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0 ||
      listen(fd.get(), 1) != 0 || chmod(path.c_str(), 0777) != 0) {
    fd.Reset();
  }
  return fd;
}

// Returns the user that wrote a byte into the other end of a socket, as this process sees it; -1:
// there is no byte.
int64_t UserOfByte(const UniqueFd& fd) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(fd.get(), &message, MSG_DONTWAIT) != 1) return -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_CREDENTIALS) return -1;
  ucred user{};
  memcpy(&user, CMSG_DATA(header), sizeof(user));
  return user.uid;
}

class SandboxTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!SystemCallFilter::Works()) GTEST_SKIP() << "no seccomp here";
    if (GetParam().user != User::kAsItIs && geteuid() != 0) GTEST_SKIP() << "for root";
    if (GetParam().namespaces) {
      if (const Status works = TryNamespaces(); !works.ok()) GTEST_SKIP() << works.ToString();
      // Root needs no user namespace, and in a changed root (chroot) the kernel gives none.
      const std::string refused = GetParam().user == User::kAsItIs ? "" : In([]() -> std::string {
        return unshare(CLONE_NEWUSER) == 0 ? "" : strerror(errno);
      });
      if (!refused.empty()) GTEST_SKIP() << "no user namespaces here: " << refused;
    }
    // The copy is in a folder from which another user can start it.
    ASSERT_OK_AND_ASSIGN(const std::string self, CurrentExecutable());
    ASSERT_OK_AND_ASSIGN(const std::string program, ReadFile(self));
    program_ = folder_.Join("program");
    ASSERT_OK(WriteFileAtomically(program_, program, 0777));
    chmod(folder_.path().c_str(), 0777);
    chmod(program_.c_str(), 0755);
  }

  // Returns what `daemon` returns in a process of the case's user, without namespaces if the case
  // says so.
  std::string In(const std::function<std::string()>& daemon) const {
    auto pipe = MakePipe();
    KILN_CHECK(pipe.ok());
    const pid_t pid = fork();
    if (pid == 0) {
      HideProcess();
      const auto [user, namespaces, landlock] = GetParam();
      const bool ready =
          Become(user) && ((namespaces && landlock) || Forbid(!namespaces, !landlock).ok());
      const std::string said = ready ? daemon() : "no other user";
      [[maybe_unused]] const ssize_t written = write(pipe->write.get(), said.data(), said.size());
      _exit(0);
    }
    pipe->write.Reset();
    std::string said(1 << 16, '\0');
    const ssize_t got = read(pipe->read.get(), said.data(), said.size());
    said.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    waitpid(pid, nullptr, 0);
    return said;
  }

  SandboxFound Find() const {
    FileView view{.read = SystemLibraryFolders(), .devices = {"/dev/null"}};
    return FindSandbox({.view = view, .nobody = NobodyExists() || GetParam().namespaces});
  }

  StatusOr<RunResult> Run(std::vector<std::string> more) const {
    const std::string scratch = folder_.Join("scratch");
    KILN_RETURN_IF_ERROR(MakeDirs(scratch));
    SubprocessOptions options;
    options.argv = {program_, "--child"};
    for (const std::string& argument : ArgumentsOf(Find().sandbox))
      options.argv.push_back(argument);
    options.argv.insert(options.argv.end(), more.begin(), more.end());
    options.clear_env = true;
    options.env = {"TMPDIR=" + scratch};
    options.output = SubprocessOptions::Stream::kPipe;
    KILN_ASSIGN_OR_RETURN(const auto sockets, MakeSocketPair());
    const int yes = 1;
    setsockopt(sockets.first.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
    options.inherited_fds = {sockets.second.get()};
    KILN_ASSIGN_OR_RETURN(RunResult result, RunToEnd(std::move(options), {}, absl::Minutes(1)));
    if (UserOfByte(sockets.first) == 0) result.output += "is root outside\n";
    return result;
  }

  TempDir folder_ = *TempDir::Make("sandbox-test");
  std::string program_;
};

TEST_P(SandboxTest, AttacksGetNowhere) {
  const std::string said = In([&]() -> std::string {
    setenv("FARM_SECRET", "secret", 1);
    const std::string key = folder_.Join("key");
    // The library is one that loads where it is not hidden.
    const auto library = ReadFile("/usr/lib/x86_64-linux-gnu/libm.so.6");
    if (!WriteFile(key, "secret").ok() || chmod(key.c_str(), 0600) != 0) return "no key";
    if (library.ok() && !WriteFile(key + ".so", *library).ok()) return "no library";
    const auto [listening, port] = Listen();
    const UniqueFd listening_file = ListenAt(key + ".socket");
    if (!listening_file.valid()) return "no socket";
    const auto result = Run(
        {"--daemon", fmt::format("{}", getpid()), "--key", key, "--port", fmt::format("{}", port)});
    if (!result.ok()) return result.status().ToString();
    return result->output + (result->exit.ok() ? "" : result->exit.ToString()) + result->error;
  });
  if (said == "no other user") GTEST_SKIP() << "this container has no other user";
  const auto [user, namespaces, landlock] = GetParam();
  const bool stays_root = user != User::kOrdinary && geteuid() == 0 && !CanBecomeNobody();
  std::string expected;
  if (!namespaces && landlock) {
    // Without namespaces processes are seen, and the scratch folder is one of the machine's disk.
    expected = "lists processes\nfills the disk\n";
    if (stays_root) expected += "is root\n";
    if (!CanRestrictFiles()) GTEST_SKIP() << "this kernel has neither namespaces nor Landlock";
  } else if (!landlock) {
    // The child may use the files of its user. It changes their contents, but nothing else of them.
    expected =
        "reads the keys\nlists processes\nsignals the daemon\nwrites outside\nwrites outside\n"
        "fills the disk\nloads a library\n";
  }
  if (stays_root) expected += "is root outside\n";
  EXPECT_EQ(said, expected);
}

TEST_P(SandboxTest, AChildEndsAsItDoesOutside) {
  const std::string said = In([&]() -> std::string {
    const auto aborted = Run({"--end", "abort"});
    const auto seven = Run({"--end", "seven"});
    if (!aborted.ok() || !seven.ok()) return "not run";
    return aborted->exit.ToString() + "; " + seven->exit.ToString();
  });
  if (said == "no other user") GTEST_SKIP() << "this container has no other user";
  EXPECT_EQ(said, "killed by signal 6 (Aborted); exit status 7");
}

TEST_P(SandboxTest, AChildConnectsToAFileIfItsViewSaysSo) {
  const std::string said = In([&]() -> std::string {
    const std::string key = folder_.Join("key");
    const UniqueFd listening = ListenAt(key + ".socket");
    const std::vector<std::string> wants = {"--key", key, "--end", "connect"};
    std::vector<std::string> may = wants;
    may.insert(may.end(), {"--sockets", "--see", key + ".socket"});
    const auto without = Run(wants), with = Run(may);
    if (!listening.valid() || !without.ok() || !with.ok()) return "not run";
    return without->exit.ToString() + "; " + with->exit.ToString();
  });
  if (said == "no other user") GTEST_SKIP() << "this container has no other user";
  EXPECT_EQ(said, "exit status 8; exit status 7");
}

TEST_P(SandboxTest, FindsWhatThereIsAndSaysWhatIsMissing) {
  const std::string said = In([&]() -> std::string {
    const SandboxFound found = Find();
    const bool has = std::ranges::find(found.applied, "namespaces") != found.applied.end();
    const Status required = RequireNoGaps(found);
    return fmt::format("{} {}", has ? "has" : "lacks", Message(required));
  });
  if (said == "no other user") GTEST_SKIP() << "this container has no other user";
  if (GetParam().namespaces) {
    EXPECT_THAT(said, testing::StartsWith("has"));
    EXPECT_THAT(said, testing::Not(HasSubstr("namespaces do not work")));
  } else {
    EXPECT_THAT(said, testing::StartsWith("lacks --require-sandbox is given, and"));
    EXPECT_THAT(said, HasSubstr("namespaces do not work here (cannot make them: Operation not "
                                "permitted"));
    EXPECT_THAT(said, HasSubstr("--security-opt"));
  }
}

std::string NameOfCase(const testing::TestParamInfo<Case>& info) {
  const char* const names[] = {"AsItIs", "WithoutAdmin", "Ordinary"};
  return std::string(names[static_cast<int>(info.param.user)]) +
         (info.param.namespaces ? "" : "WithoutNamespaces") +
         (info.param.landlock ? "" : "AndLandlock");
}

INSTANTIATE_TEST_SUITE_P(All, SandboxTest,
                         testing::Values(Case{User::kAsItIs, true}, Case{User::kAsItIs, false},
                                         Case{User::kWithoutAdmin, true},
                                         Case{User::kOrdinary, true}, Case{User::kOrdinary, false},
                                         Case{User::kOrdinary, false, false}),
                         NameOfCase);

// Root that keeps its user has the rights of the files of /proc without any capability.
TEST(NamespacesTest, SettingsOfTheMachineAreReadOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "for root";
  if (const Status works = TryNamespaces(); !works.ok()) GTEST_SKIP() << works.ToString();
  ASSERT_OK_AND_ASSIGN(const TempDir scratch, TempDir::Make("sandbox-proc"));
  const pid_t pid = fork();
  if (pid == 0) {
    if (!EnterNamespaces({.scratch = scratch.path()}, false).ok()) _exit(100);
    const bool reads = open("/proc/sys/kernel/core_pattern", O_RDONLY) >= 0;
    const bool writes = open("/proc/sys/kernel/core_pattern", O_WRONLY) >= 0 ||
                        open("/proc/sysrq-trigger", O_WRONLY) >= 0;
    const bool names_itself = WriteFile("/proc/self/comm", "another").ok();
    _exit((reads ? 0 : 1) + (writes ? 2 : 0) + (names_itself ? 0 : 4));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(NamespacesTest, ATryThatHangsEnds) {
  EXPECT_THAT(TryNamespaces(absl::ZeroDuration()),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("has not ended after 0")));
  EXPECT_LT(waitpid(-1, nullptr, WNOHANG), 0) << "somebody is left";
}

TEST(NamespacesTest, SignalsDoNotDisturbATry) {
  if (const Status works = TryNamespaces(); !works.ok()) GTEST_SKIP() << works.ToString();
  struct sigaction action{}, old{};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, &old);
  const itimerval often{{0, 1000}, {0, 1000}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < 5; ++i) EXPECT_OK(TryNamespaces());
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &old, nullptr);
}

TEST(NamespacesTest, NobodyStillEndsWithItsParent) {
  if (!CanBecomeNobody()) GTEST_SKIP() << "for root";
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int death_signal = 0;
    const bool became = BecomeNobody().ok() && geteuid() == kNobody;
    prctl(PR_GET_PDEATHSIG, &death_signal);
    _exit(became && death_signal == SIGKILL ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(SandboxOrphanTest, EverythingEndsWithTheChild) {
  if (const Status works = TryNamespaces(); !works.ok()) GTEST_SKIP() << works.ToString();
  ASSERT_OK_AND_ASSIGN(const TempDir scratch, TempDir::Make("sandbox-orphan"));
  // The orphan holds the other end.
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  const pid_t pid = fork();
  if (pid == 0) {
    if (!EnterNamespaces({.scratch = scratch.path()}, true).ok()) _exit(1);
    if (fork() == 0) {
      setsid();
      if (fork() != 0) _exit(0);
      [[maybe_unused]] const ssize_t written = write(pipe.write.get(), "o", 1);
      sleep(600);
      _exit(0);
    }
    sleep(600);
    _exit(0);
  }
  pipe.write.Reset();
  char byte = 0;
  ASSERT_EQ(read(pipe.read.get(), &byte, 1), 1);
  // The outer process is killed hard, and ends nobody itself.
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(read(pipe.read.get(), &byte, 1), 0) << "somebody holds the pipe still";
}

TEST(SandboxArgumentsTest, ReachTheChild) {
  Sandbox sandbox{.wanted = true, .namespaces = true, .nobody = true, .group = "/g"};
  sandbox.view = {.read = {"/a", "/b c"}, .devices = {"/dev/d"}, .write = {"/w"}};
  sandbox.view.has_shared_memory = sandbox.view.has_sockets = true;
  std::vector<std::string> arguments = ArgumentsOf(sandbox);
  std::reverse(arguments.begin(), arguments.end());
  CLI::App app;
  Sandbox got;
  AddSandboxOptions(app, got);
  app.parse(arguments);
  EXPECT_TRUE(got.wanted && got.namespaces && got.nobody);
  EXPECT_TRUE(got.view.has_shared_memory && got.view.has_sockets);
  EXPECT_EQ(got.group, "/g");
  EXPECT_EQ(got.view.read, sandbox.view.read);
  EXPECT_EQ(got.view.devices, sandbox.view.devices);
  EXPECT_EQ(got.view.write, sandbox.view.write);
}

class FitSandboxTest : public testing::Test {
 protected:
  // A device that opens where `opens` says.
  Status Fit(const std::function<bool(const Sandbox&)>& opens) {
    return FitSandbox(found_, [&](const Sandbox& sandbox) {
      ++tries_;
      return opens(sandbox) ? OkStatus() : Internal("no driver at try {}", tries_);
    });
  }

  SandboxFound found_{.sandbox = {.namespaces = true, .nobody = true},
                      .applied = {"namespaces", "unprivileged user", "seccomp"}};
  int tries_ = 0;
};

TEST_F(FitSandboxTest, ADeviceThatOpensIsLeftInAllMeans) {
  EXPECT_OK(Fit([](const Sandbox&) { return true; }));
  EXPECT_EQ(tries_, 1);
  EXPECT_OK(RequireNoGaps(found_));
}

TEST_F(FitSandboxTest, RootStaysUnprivilegedWhereOnlyNamespacesAreInTheWay) {
  EXPECT_OK(Fit([](const Sandbox& sandbox) { return !sandbox.namespaces; }));
  EXPECT_FALSE(found_.sandbox.namespaces);
  EXPECT_TRUE(found_.sandbox.nobody);
  EXPECT_THAT(found_.applied, testing::ElementsAre("unprivileged user", "seccomp"));
  EXPECT_THAT(RequireNoGaps(found_),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("does not open in them (no driver at try 1)")));
}

TEST_F(FitSandboxTest, ADeviceForRootAloneIsSaid) {
  EXPECT_OK(Fit([](const Sandbox& sandbox) { return !sandbox.nobody; }));
  EXPECT_FALSE(found_.sandbox.namespaces || found_.sandbox.nobody);
  EXPECT_THAT(found_.applied, testing::ElementsAre("seccomp"));
  EXPECT_THAT(RequireNoGaps(found_),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("does not open for user 65534 (no driver at try 2)")));
}

TEST_F(FitSandboxTest, ADeviceThatNeverOpensCostsNoMeans) {
  EXPECT_THAT(Fit([](const Sandbox&) { return false; }),
              StatusIs(StatusCode::kInternal, "no driver at try 3"));
  EXPECT_TRUE(found_.sandbox.namespaces && found_.sandbox.nobody);
  EXPECT_OK(RequireNoGaps(found_));
}

}  // namespace

int RunChild(int argc, char** argv) { return Child(argc, argv); }

}  // namespace kiln

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--child") {
    return kiln::RunChild(argc - 1, argv + 1);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
