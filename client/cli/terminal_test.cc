// `kiln tune` on a terminal: a model of the screen shows what a user sees of the real binary.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "absl/time/clock.h"
#include "base/console/screen_testing.h"
#include "base/file/fd.h"
#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Not;
using testing::SizeIs;

// A program on a pseudo-terminal of its own.
class Terminal {
 public:
  Terminal(const Words& words, int columns, int rows) : screen_(columns, rows) {
    controller_.Reset(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    KILN_CHECK(controller_.valid() && grantpt(controller_.get()) == 0 &&
               unlockpt(controller_.get()) == 0);
    const UniqueFd terminal(open(ptsname(controller_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    KILN_CHECK(terminal.valid());
    Resize(columns, rows);
    SubprocessOptions options = KilnOptions(words);
    options.argv.insert(options.argv.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\" >&3 2>&3"});
    options.env.push_back("TERM=xterm");
    options.env.push_back("COLUMNS=");
    options.output = options.error = SubprocessOptions::Stream::kNull;
    options.inherited_fds = {terminal.get()};
    auto process = Subprocess::Spawn(options);
    KILN_CHECK(process.ok(), "{}", Message(process.status()));
    process_ = std::make_unique<Subprocess>(*std::move(process));
  }

  void Resize(int columns, int rows) {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = static_cast<unsigned short>(rows);
    KILN_CHECK(ioctl(controller_.get(), TIOCSWINSZ, &size) == 0);
    screen_.Resize(columns, rows);
  }
  // Reads until the condition holds; false: the program ended or a minute passed before.
  bool Until(const std::function<bool()>& condition) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (!condition()) {
      if (absl::Now() > deadline || !Read()) return condition();
    }
    return true;
  }
  bool Shows(const std::string& text) const {
    const auto rows = screen_.Visible();
    return std::any_of(rows.begin(), rows.end(),
                       [&](const std::string& row) { return row.find(text) != std::string::npos; });
  }
  // Returns all rows on the screen and in the scroll-back.
  Words Everything() const {
    Words rows = screen_.scrollback();
    const Words visible = screen_.Visible();
    rows.insert(rows.end(), visible.begin(), visible.end());
    return rows;
  }
  ExitStatus End() {
    Until([] { return false; });
    return process_->Wait(absl::Minutes(1)).value_or(ExitStatus{.code = -1});
  }

  ScreenModel& screen() { return screen_; }
  Subprocess& process() { return *process_; }

 private:
  // Returns false at the end of the program.
  bool Read() {
    pollfd ready{controller_.get(), POLLIN, 0};
    if (poll(&ready, 1, 1000) == 0) return true;
    char buffer[1 << 14];
    const ssize_t size = read(controller_.get(), buffer, sizeof(buffer));
    if (size <= 0) return false;
    screen_.Feed({buffer, static_cast<size_t>(size)});
    return true;
  }

  ScreenModel screen_;
  UniqueFd controller_;
  std::unique_ptr<Subprocess> process_;
};

auto NoWiderThan(size_t columns) {
  return Each(testing::ResultOf([](const std::string& row) { return row.size(); }, Le(columns)));
}

class TerminalTest : public KilnTest {
 protected:
  Words Tune(const Words& more) const {
    Words words = {"tune",     "--target",      "null",          "--db", db_,
                   "--policy", "sketch.random", "--cooldown-ms", "5"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Words TuneManyTasks() const {
    std::string list;
    for (int i = 1; i <= 24; ++i)
      list += std::to_string(i) + " matmul 64,64," + std::to_string(8 * i) + " bias,relu\n";
    const std::string path = folder_.Join("net.txt");
    KILN_CHECK(WriteFile(path, list).ok());
    return Tune({"--tasks", path, "--trials", "1000000"});
  }
};

TEST_F(TerminalTest, ManyTasksFitAnyTerminalAndLeaveNothingButTheEnd) {
  Terminal terminal(TuneManyTasks(), 80, 24);
  ScreenModel& screen = terminal.screen();
  const auto head = [&](const std::string& more) {
    const Words rows = screen.Visible();
    return !rows.empty() && rows[0].starts_with("ID  Task") && terminal.Shows(more);
  };
  ASSERT_TRUE(terminal.Until([&] { return head("of them without a result"); }));
  // The last lines are drawn last: before that, half of the screen is of the drawing before.
  ASSERT_TRUE(terminal.Until([&] {
    return head("... and ") && !terminal.Shows("trials 0/") && terminal.Shows("total latency") &&
           terminal.Shows(" running on null");
  }));
  EXPECT_THAT(screen.Visible(), AllOf(SizeIs(Le(23u)), NoWiderThan(80)));

  // The terminal gets narrower and lower, then wide and tall enough for everything.
  terminal.Resize(50, 14);
  ASSERT_TRUE(
      terminal.Until([&] { return head("... and ") && terminal.Shows(" running on null"); }));
  ASSERT_TRUE(terminal.Until([&] { return screen.Visible().size() <= 13; }));
  EXPECT_THAT(screen.Visible(), NoWiderThan(50));
  terminal.Resize(200, 50);
  ASSERT_TRUE(
      terminal.Until([&] { return !terminal.Shows("... and ") && terminal.Shows("23  matmul"); }));
  for (int i = 0; i < 24; ++i)
    EXPECT_TRUE(terminal.Shows(" matmul 64,64," + std::to_string(8 * (i + 1)) + " + bias + relu"));
  EXPECT_THAT(screen.scrollback(), IsEmpty());

  // The first screen has its first line, the totals, and the table of the results.
  terminal.Resize(80, 24);
  terminal.process().Kill(SIGINT);
  EXPECT_EQ(terminal.End().code, 130);
  EXPECT_FALSE(screen.alternate());
  EXPECT_TRUE(screen.cursor_shown());
  EXPECT_EQ(screen.unknown(), 0);
  const Words rows = terminal.Everything();
  EXPECT_THAT(rows[0], testing::StartsWith("job "));
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(),
                          [](const std::string& row) { return row.starts_with("ID  Task"); }),
            1);
  EXPECT_THAT(rows, Contains(HasSubstr("cancelled")));
  EXPECT_THAT(rows, Not(Contains(HasSubstr("... and "))));
}

TEST_F(TerminalTest, OneTaskIsDrawnBelowWhatStandsThere) {
  Terminal terminal(Tune({"matmul", "--args", "64,64,64", "--trials", "400"}), 80, 24);
  ASSERT_TRUE(terminal.Until(
      [&] { return terminal.Shows("total latency") && terminal.Shows("Speed-up"); }));
  EXPECT_FALSE(terminal.screen().alternate());
  EXPECT_THAT(terminal.screen().Visible(), AllOf(SizeIs(Le(8u)), Contains(HasSubstr("job ")),
                                                 Contains(HasSubstr("matmul 64,64,64"))));
  EXPECT_EQ(terminal.End().code, 0);
  const Words rows = terminal.Everything();
  EXPECT_THAT(rows, Contains(HasSubstr("trials 400/400")));
  EXPECT_THAT(rows, Contains(HasSubstr("  best ")));
  EXPECT_THAT(rows, Not(Contains(HasSubstr("Speed-up"))));
  EXPECT_EQ(terminal.screen().unknown(), 0);
}

TEST_F(TerminalTest, ExplainedThereAreLines) {
  Terminal terminal(Tune({"matmul", "--args", "64,64,64", "--trials", "4", "--explain"}), 80, 24);
  EXPECT_EQ(terminal.End().code, 0);
  EXPECT_THAT(terminal.Everything(), Contains(HasSubstr("round 0: task 0")));
}

TEST_F(TerminalTest, TheLastTrialOfATemplateStandsInTheBlock) {
  Words words = {"tune",          "dense", "--args",   "64,64,64", "--target", "null",
                 "--db",          db_,     "--trials", "400",      "--policy", "template.random",
                 "--cooldown-ms", "5"};
  Terminal terminal(words, 80, 24);
  ASSERT_TRUE(terminal.Until([&] { return terminal.Shows("current/best "); }));
  EXPECT_THAT(terminal.screen().Visible(), NoWiderThan(80));
  terminal.process().Kill(SIGINT);
  EXPECT_EQ(terminal.End().code, 130);
  EXPECT_THAT(terminal.Everything(), Not(Contains(HasSubstr("current/best "))));
}

TEST_F(TerminalTest, TablesFitATerminalAndAreWholeInAPipe) {
  const std::string target =
      "llvm -mattr=+adx,+aes,+avx,+avx2,+bmi,+bmi2,+f16c,+fma -mcpu=x86-64-v3";
  const std::string dag =
      R"(["0f1e2d3c4b5a69788796a5b4c3d2e1f0", [1, 56, 56, 64], [3, 3, 64, 64], [1, 56, 56, 64]])";
  std::string quoted;
  for (const char c : dag) quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
  const std::string log = folder_.Join("log.json");
  ASSERT_TRUE(WriteFile(log, "{\"i\": [[\"" + quoted + "\", \"" + target +
                                 "\", [2, 64, 64, 0, 0, 0, 0, 0], \"\", 0, []], [[], []]], "
                                 "\"r\": [[0.001], 0, 0.5, 1691392900], \"v\": \"v0.6\"}\n")
                  .ok());
  KilnPrints({"records", "import", log, "--db", db_});
  for (const Words& command :
       std::vector<Words>{{"best", "import"}, {"records", "stats"}, {"jobs"}, {"ops"}}) {
    Words words = command;
    if (words[0] != "ops") words.insert(words.end(), {"--db", db_});
    Terminal terminal(words, 80, 24);
    EXPECT_EQ(terminal.End().code, 0);
    const Words rows = terminal.Everything();
    EXPECT_THAT(rows, NoWiderThan(80));
    // A row that is too long is folded: if there are as many rows as in the pipe, none is too long.
    const std::string piped = KilnPrints(words);
    if (words[0] != "ops" && words[0] != "best") {
      EXPECT_EQ(rows.size(), static_cast<size_t>(std::count(piped.begin(), piped.end(), '\n')))
          << piped;
      EXPECT_THAT(piped, Not(HasSubstr("...")));
    }
    if (words[0] != "ops") {
      EXPECT_THAT(rows[1], testing::MatchesRegex("-+")) << words[0];
    }
  }
  EXPECT_THAT(KilnPrints({"best", "import", "--db", db_}),
              AllOf(HasSubstr("llvm"), HasSubstr("x86-64-v3"), Not(HasSubstr("mattr"))));
  EXPECT_THAT(KilnPrints({"records", "stats", "--db", db_}), HasSubstr(dag));
  EXPECT_THAT(KilnPrints({"best", "import", "--db", db_, "--json"}), HasSubstr(target));
}

}  // namespace
}  // namespace kiln::client
