// What a command prints for a person: tables, and a block of lines redrawn in place on a terminal.
// Piped, all of it is plain text. None of it is thread-safe; one thread owns the terminal.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/screen_guard.h"

namespace kiln {

bool IsTerminal(int fd);
// Columns and rows; 80 and 24 where they cannot be told. COLUMNS, if set, overrides the columns.
int TerminalColumns(int fd);
int TerminalRows(int fd);
// The columns that lines printed on `fd` should fit in; 0 where it is no terminal: any number.
int OutputColumns(int fd);
// Whether to send colours: a terminal that is not dumb, and NO_COLOR not set.
bool UseColor(int fd);

// Text with colour around it; unchanged when !on.
enum class Color { kBold, kDim, kRed, kGreen, kYellow, kCyan };
std::string Colored(std::string_view text, Color color, bool on);

// Columns taken by UTF-8 text; escape sequences take none. (Every other character counts as one.)
int DisplayWidth(std::string_view text);
// At most `columns` wide, with "..." at the end when something was cut.
std::string Elide(std::string_view text, int columns);

// "a  b  c", whose parts have two blanks between them, as lines of at most `columns`; 0: one line.
std::vector<std::string> WrapParts(std::string_view text, int columns);

// Rows of cells as aligned text.
//   Table table({{"ID"}, {"Latency", Table::kRight}});
//   table.AddRow({"0", "1.2 ms"});
//   for (const std::string& line : table.Lines()) ...
class Table {
 public:
  enum Align { kLeft, kRight };
  struct Column {
    std::string header;
    Align align = kLeft;
    int least = 0;  // the columns that a terminal too narrow for the table may leave it; 0: all
    int lines = 1;  // a cell that is longer goes on in so many lines at most, broken at blanks
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One cell per column.
  void AddRow(std::vector<std::string> cells);
  size_t rows() const { return rows_.size(); }
  // The header, a rule, the rows; two spaces between columns, no trailing blanks. At most `columns`
  // wide, with "..." where something was cut: cells, first of the widest of the columns that have a
  // `least`, each as far as its `lines` do not hold it; then columns, the last ones first, with the
  // mark in the header. 0: as wide as the cells.
  std::vector<std::string> Lines(int columns = 0) const;
  std::string ToString(int columns = 0) const;  // the lines, each with its newline

 private:
  std::vector<int> Widths(int columns) const;
  std::string Line(const std::vector<std::string>& cells, const std::vector<int>& widths) const;
  // A row, of several lines where cells are.
  std::vector<std::string> RowLines(const std::vector<std::string>& cells,
                                    const std::vector<int>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A block of lines at the bottom of the screen. On a terminal, Redraw replaces the block in place;
// elsewhere it prints nothing, and the program says what happens by Print.
//
// A block of at most half the terminal's rows is drawn below what stands there. A taller one takes
// the alternate screen, so that nothing of it gets into the scrollback, whatever the user does with
// the window; what was there before comes back with Clear. The size of the terminal is looked at
// with each Redraw.
class LivePrinter {
 public:
  explicit LivePrinter(FILE* file = stdout);
  // For tests: writes as to a terminal of this size.
  LivePrinter(FILE* file, int columns, int rows);
  ~LivePrinter();  // Finish
  LivePrinter(const LivePrinter&) = delete;
  LivePrinter& operator=(const LivePrinter&) = delete;

  bool live() const { return live_; }
  // What the terminal has for a block now.
  int columns() const;
  int rows() const;

  // Longer lines than columns() are elided; of more than rows() lines the first ones are shown.
  void Redraw(const std::vector<std::string>& lines);
  // A line that stays, above the block. On the alternate screen the newest ones stand below the
  // block until all of them are printed where they stay.
  void Print(std::string_view line);
  // The block as it stands becomes ordinary output; the next Redraw starts a new one. A block on
  // the alternate screen is gone.
  void Finish();
  // Takes the block away.
  void Clear();

 private:
  bool full_screen() const { return guard_.has_value(); }
  std::string ToTop() const;
  std::string Block(const std::vector<std::string>& lines) const;
  void EnterFullScreen();
  void LeaveFullScreen();
  void Write(std::string_view text);

  FILE* file_;
  bool live_;
  int fixed_columns_ = 0,
      fixed_rows_ = 0;              // 0: ask the terminal each time, since it may be resized
  std::vector<std::string> lines_;  // as last drawn
  std::vector<std::string> kept_;   // printed on the alternate screen
  std::optional<ScreenGuard> guard_;
};

}  // namespace kiln
