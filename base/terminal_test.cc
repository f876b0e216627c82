#include "base/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/fd.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::ElementsAre;

// Interprets what LivePrinter sends, on an endless screen.
class Screen {
 public:
  void Feed(std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == '\n') {
        ++row_;
        column_ = 0;
      } else if (bytes[i] == '\r') {
        column_ = 0;
      } else if (bytes.substr(i, 2) == "\033[") {
        const size_t end = bytes.find_first_of("AJm", i);
        const int count = std::atoi(std::string(bytes.substr(i + 2, end - i - 2)).c_str());
        if (bytes[end] == 'A') row_ -= count;
        if (bytes[end] == 'J') {
          lines_.resize(row_ + 1);
          lines_[row_].resize(column_);
        }
        i = end;
      } else {
        lines_.resize(std::max<size_t>(lines_.size(), row_ + 1));
        lines_[row_].resize(std::max<size_t>(lines_[row_].size(), column_ + 1), ' ');
        lines_[row_][column_++] = bytes[i];
      }
    }
  }
  // Without the lines below the last one with text.
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines = lines_;
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }

 private:
  std::vector<std::string> lines_;
  size_t row_ = 0, column_ = 0;
};

class LivePrinterTest : public testing::Test {
 protected:
  void SetUp() override { file_ = std::tmpfile(); }
  void TearDown() override { std::fclose(file_); }

  std::string Sent() {
    std::string text(std::ftell(file_), '\0');
    EXPECT_EQ(pread(fileno(file_), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }
  std::vector<std::string> Shown() {
    Screen screen;
    screen.Feed(Sent());
    return screen.Lines();
  }

  FILE* file_;
};

TEST_F(LivePrinterTest, RedrawReplacesTheBlock) {
  LivePrinter printer(file_, 40, 20);
  printer.Redraw({"one", "two", "three"});
  EXPECT_THAT(Shown(), ElementsAre("one", "two", "three"));
  printer.Redraw({"uno", "dos"});
  EXPECT_THAT(Shown(), ElementsAre("uno", "dos"));
  printer.Redraw({"1", "2", "3", "4"});
  EXPECT_THAT(Shown(), ElementsAre("1", "2", "3", "4"));
  printer.Clear();
  EXPECT_THAT(Shown(), ElementsAre());
}

TEST_F(LivePrinterTest, PrintStaysAboveTheBlock) {
  LivePrinter printer(file_, 40, 20);
  printer.Print("first");
  printer.Redraw({"a", "b"});
  printer.Print("second");
  printer.Redraw({"c", "d"});
  EXPECT_THAT(Shown(), ElementsAre("first", "second", "c", "d"));
}

TEST_F(LivePrinterTest, FinishKeepsTheBlock) {
  LivePrinter printer(file_, 40, 20);
  printer.Redraw({"a", "b"});
  printer.Finish();
  printer.Redraw({"c"});
  printer.Redraw({"d"});
  EXPECT_THAT(Shown(), ElementsAre("a", "b", "d"));
}

TEST_F(LivePrinterTest, FitsTheTerminal) {
  LivePrinter printer(file_, 8, 4);
  printer.Redraw({"1", "2", "3", "4", "a long line"});
  EXPECT_THAT(Shown(), ElementsAre("3", "4", "a lon..."));
}

TEST_F(LivePrinterTest, PipedItPrintsPlainLinesOnly) {
  LivePrinter printer(file_);
  EXPECT_FALSE(printer.live());
  printer.Redraw({"progress"});
  printer.Print("a line");
  printer.Redraw({"more"});
  printer.Finish();
  printer.Clear();
  EXPECT_EQ(Sent(), "a line\n");
}

TEST(TerminalTest, AFileIsNoTerminal) {
  UniqueFd fd(open("/dev/null", O_RDWR));
  EXPECT_FALSE(IsTerminal(fd.get()));
  EXPECT_FALSE(UseColor(fd.get()));
  unsetenv("COLUMNS");
  EXPECT_EQ(TerminalColumns(fd.get()), 80);
  EXPECT_EQ(TerminalRows(fd.get()), 24);
  setenv("COLUMNS", "132", 1);
  EXPECT_EQ(TerminalColumns(fd.get()), 132);
  setenv("COLUMNS", "many", 1);
  EXPECT_EQ(TerminalColumns(fd.get()), 80);
}

TEST(TerminalTest, APseudoTerminalIsOneUnlessColoursAreUnwanted) {
  UniqueFd controller(posix_openpt(O_RDWR | O_NOCTTY));
  if (!controller.valid() || grantpt(controller.get()) != 0 || unlockpt(controller.get()) != 0) {
    GTEST_SKIP() << "no pseudo-terminals here";
  }
  UniqueFd terminal(open(ptsname(controller.get()), O_RDWR | O_NOCTTY));
  ASSERT_TRUE(terminal.valid());
  EXPECT_TRUE(IsTerminal(terminal.get()));
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(UseColor(terminal.get()));
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(UseColor(terminal.get()));
  unsetenv("NO_COLOR");
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(UseColor(terminal.get()));
}

TEST(TerminalTest, WidthCountsCharactersNotBytesOrEscapes) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("µs – ok"), 7);
  EXPECT_EQ(DisplayWidth(Colored("red", Color::kRed, true)), 3);
  EXPECT_EQ(DisplayWidth("\033[31"), 0);
  EXPECT_EQ(DisplayWidth("\xff\xfe"), 2);
}

TEST(TerminalTest, ElideCutsBetweenCharacters) {
  EXPECT_EQ(Elide("abcdef", 6), "abcdef");
  EXPECT_EQ(Elide("abcdefg", 6), "abc...");
  EXPECT_EQ(Elide("µµµµµµµ", 6), "µµµ...");
  EXPECT_EQ(Elide("abcdef", 3), "abc");
  EXPECT_EQ(Elide("abcdef", 0), "");
  EXPECT_EQ(Elide("abcdef", -1), "");
  EXPECT_EQ(Elide(Colored("abcdefgh", Color::kBold, true), 6), "\033[1mabc...\033[0m");
}

TEST(TableTest, AlignsColumns) {
  Table table({{"ID"}, {"Task"}, {"Latency", Table::kRight}});
  table.AddRow({"0", "conv2d", "1.2 ms"});
  table.AddRow({"10", "µ", "10.25 ms"});
  EXPECT_THAT(table.Lines(), ElementsAre("ID  Task     Latency",  //
                                         "--------------------",  //
                                         "0   conv2d    1.2 ms",  //
                                         "10  µ       10.25 ms"));
  EXPECT_EQ(table.rows(), 2u);
}

TEST(TableTest, NoTrailingBlanksAndElidedCells) {
  Table table({{"Name", Table::kLeft, 6}, {"Note"}});
  table.AddRow({"a long name", ""});
  EXPECT_EQ(table.ToString(),
            "Name    Note\n"
            "------------\n"
            "a l...\n");
}

TEST(TableDeathTest, ARowOfTheWrongLengthIsABug) {
  Table table({{"A"}, {"B"}});
  EXPECT_DEATH(table.AddRow({"1"}), "1 cells for 2 columns");
}

}  // namespace
}  // namespace kiln
