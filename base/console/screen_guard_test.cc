#include "base/console/screen_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace kiln {
namespace {

// A child that has a guard and does `what`. Until returns the bytes that the child sent when it
// ends or stops, and `status` as from waitpid.
struct Guarded {
  std::string Until(int options, int* status) {
    EXPECT_EQ(waitpid(pid, status, options), pid);
    std::string text(64, '\0');
    const ssize_t size = read(ends[0], text.data(), text.size());
    return text.substr(0, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  }
  pid_t pid = -1;
  int ends[2];
};

Guarded Start(void (*what)()) {
  Guarded child;
  EXPECT_EQ(pipe(child.ends), 0);
  child.pid = fork();
  if (child.pid == 0) {
    const ScreenGuard guard(child.ends[1], "<enter>", "<leave>");
    what();
    _exit(0);
  }
  close(child.ends[1]);
  return child;
}

TEST(ScreenGuardTest, AFatalSignalLeavesTheScreenAndKills) {
  int status = 0;
  EXPECT_EQ(Start([] { std::abort(); }).Until(0, &status), "<leave>");
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  EXPECT_EQ(Start([] { raise(SIGQUIT); }).Until(0, &status), "<leave>");
  EXPECT_EQ(WTERMSIG(status), SIGQUIT);
}

TEST(ScreenGuardTest, StoppedItLeavesTheScreenAndTakesItAgain) {
  int status = 0;
  Guarded child = Start([] { raise(SIGTSTP); });
  EXPECT_EQ(child.Until(WUNTRACED, &status), "<leave>");
  EXPECT_TRUE(WIFSTOPPED(status));
  kill(child.pid, SIGCONT);
  EXPECT_EQ(child.Until(0, &status), "<enter>");
  EXPECT_TRUE(WIFEXITED(status));
}

TEST(ScreenGuardTest, AfterwardsSignalsAreAsBefore) {
  {
    const ScreenGuard guard(STDERR_FILENO, "", "");
  }
  for (const int signal : ScreenGuard::kFatal) {
    struct sigaction action;
    sigaction(signal, nullptr, &action);
    EXPECT_TRUE(action.sa_handler == SIG_DFL) << signal;
  }
}

}  // namespace
}  // namespace kiln
