#include "base/console/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/console/screen_testing.h"
#include "base/file/fd.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::ElementsAre;

class LivePrinterTest : public testing::Test {
 protected:
  void SetUp() override { file_ = std::tmpfile(); }
  void TearDown() override { std::fclose(file_); }

  std::string Sent() {
    std::string text(std::ftell(file_), '\0');
    EXPECT_EQ(pread(fileno(file_), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }
  ScreenModel ScreenOf(int columns, int rows) {
    ScreenModel screen(columns, rows);
    screen.Feed(Sent());
    EXPECT_EQ(screen.unknown(), 0);
    return screen;
  }
  std::vector<std::string> Shown() { return ScreenOf(40, 20).Visible(); }

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

TEST_F(LivePrinterTest, AWideBlockIsElided) {
  LivePrinter printer(file_, 8, 20);
  printer.Redraw({"a long line", "12345678"});
  printer.Redraw({"a long line", "12345678"});
  EXPECT_THAT(ScreenOf(8, 20).Visible(), ElementsAre("a lon...", "12345678"));
}

TEST_F(LivePrinterTest, ASmallBlockAtTheTopOfTheScreenLeavesNoScrollback) {
  LivePrinter printer(file_, 40, 6);
  for (int i = 0; i < 3; ++i) printer.Redraw({"a", "b", "c"});
  printer.Print("line");
  printer.Redraw({"a", "b"});
  const ScreenModel screen = ScreenOf(40, 6);
  EXPECT_THAT(screen.Visible(), ElementsAre("line", "a", "b"));
  EXPECT_THAT(screen.scrollback(), ElementsAre());
  EXPECT_FALSE(screen.alternate());
}

TEST_F(LivePrinterTest, ATallBlockTakesTheAlternateScreenAndGivesTheOldOneBack) {
  std::fputs("$ kiln\n", file_);
  LivePrinter printer(file_, 20, 6);
  printer.Redraw({"1", "2", "3", "4", "5", "6", "7"});
  EXPECT_EQ(printer.rows(), 5);
  {
    const ScreenModel screen = ScreenOf(20, 6);
    EXPECT_TRUE(screen.alternate());
    EXPECT_FALSE(screen.cursor_shown());
    EXPECT_THAT(screen.Visible(), ElementsAre("1", "2", "3", "4", "5"));
  }
  printer.Print("a notice that is longer than a row");
  EXPECT_EQ(printer.rows(), 4);
  printer.Redraw({"1", "2"});
  EXPECT_THAT(ScreenOf(20, 6).Visible(), ElementsAre("1", "2", "a notice that is ..."));
  printer.Clear();
  const ScreenModel screen = ScreenOf(20, 6);
  EXPECT_FALSE(screen.alternate());
  EXPECT_TRUE(screen.cursor_shown());
  EXPECT_THAT(screen.Visible(), ElementsAre("$ kiln", "a notice that is lon", "ger than a row"));
  EXPECT_THAT(screen.scrollback(), ElementsAre());
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

TEST(TerminalTest, PartsAreWrappedBetweenThem) {
  EXPECT_THAT(WrapParts("trials 6/64  errors 0  time 2 s", 0),
              ElementsAre("trials 6/64  errors 0  time 2 s"));
  EXPECT_THAT(WrapParts("trials 6/64  errors 0  time 2 s", 22),
              ElementsAre("trials 6/64  errors 0", "time 2 s"));
  EXPECT_THAT(WrapParts("a part too long for it  b", 8),
              ElementsAre("a part too long for it", "b"));
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

TEST(TableTest, CellsHaveNoControlCharacters) {
  Table table({{"Name"}});
  table.AddRow({"  a\x1b[2J\nb"});
  EXPECT_EQ(table.Lines().back(), "  a [2J b");
}
TEST(TableTest, NoTrailingBlanks) {
  Table table({{"Name", Table::kLeft, 6}, {"Note"}});
  table.AddRow({"a long name", ""});
  EXPECT_EQ(table.ToString(),
            "Name         Note\n"
            "-----------------\n"
            "a long name\n");
}

TEST(TableTest, FitsANarrowTerminalByItsWidestColumns) {
  Table table({{"Name", Table::kLeft, 6}, {"Trials", Table::kRight}, {"On", Table::kLeft, 4}});
  table.AddRow({"a long name", "64", "a device"});
  EXPECT_THAT(table.Lines(29), table.Lines());
  EXPECT_THAT(table.Lines(24), ElementsAre("Name     Trials  On",  //
                                           "------------------------", "a lo...      64  a de..."));
  EXPECT_THAT(table.Lines(16), ElementsAre("Name  ...",    //
                                           "-----------",  //
                                           "a long name"));
  EXPECT_THAT(table.Lines(6), ElementsAre("Nam...", "------", "a l..."));
}

TEST(TableTest, LongCellsGoOnInFurtherLines) {
  Table table({{"ID", Table::kRight}, {"Task", Table::kLeft, 6, 3}, {"Trials", Table::kRight}});
  table.AddRow({"7", "conv 1,56,56,64 + add", "64"});
  table.AddRow({"8", "softmax", "8"});
  EXPECT_THAT(table.Lines(), testing::SizeIs(4));
  EXPECT_THAT(table.Lines(20), ElementsAre("ID  Task      Trials",  //
                                           "--------------------",  //
                                           " 7  conv          64",  //
                                           "    1,56,56,",          //
                                           "    64 + add",          //
                                           " 8  softmax        8"));
  EXPECT_THAT(table.Lines(25), ElementsAre("ID  Task           Trials",  //
                                           "-------------------------",  //
                                           " 7  conv               64",  //
                                           "    1,56,56,64 +",           //
                                           "    add",                    //
                                           " 8  softmax             8"));
}

TEST(TableDeathTest, ARowOfTheWrongLengthIsABug) {
  Table table({{"A"}, {"B"}});
  EXPECT_DEATH(table.AddRow({"1"}), "1 cells for 2 columns");
}

}  // namespace
}  // namespace kiln
