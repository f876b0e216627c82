// Output of commands for people: tables, and a block of lines that is redrawn in place on a
// terminal. In a pipe all of it is plain text. Not thread-safe; one thread owns the terminal.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/console/screen_guard.h"

namespace kiln {

bool IsTerminal(int fd);
// Columns and rows of the terminal; 80 and 24 if they are not known. COLUMNS, if set, overrides the
// columns.
int TerminalColumns(int fd);
int TerminalRows(int fd);
// Returns the columns that lines printed on `fd` should fit in; 0: `fd` is no terminal, and lines
// may be of any length.
int OutputColumns(int fd);
// Returns whether to send colours: `fd` is a terminal that is not dumb, and NO_COLOR is not set.
bool UseColor(int fd);

// Returns the text with colour around it, or unchanged if !on.
enum class Color { kBold, kDim, kRed, kGreen, kYellow, kCyan };
std::string Colored(std::string_view text, Color color, bool on);

// Returns the columns that UTF-8 text takes. Escape sequences take none; every other character
// counts as one.
int DisplayWidth(std::string_view text);
// Returns the text in at most `columns`, with "..." at the end if something was cut.
std::string Elide(std::string_view text, int columns);

// Breaks "a b c", whose parts have two blanks between them, into lines of at most `columns`; 0: one
// line.
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
    // Columns that a terminal too narrow for the table leaves at least; 0: all.
    int least = 0;
    // Most lines of a cell. A longer cell is broken at blanks.
    int lines = 1;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // Adds a row with one cell per column.
  void AddRow(std::vector<std::string> cells);
  size_t rows() const { return rows_.size(); }
  // Returns the header, a rule and the rows, with two spaces between columns and no trailing
  // blanks. The lines are at most `columns` wide; 0: as wide as the cells. If they do not fit,
  // cells are cut first, with "...", in the widest of the columns that have a `least`, as far as
  // their `lines` do not hold them. Then the last columns are left out, with the mark in the
  // header.
  std::vector<std::string> Lines(int columns = 0) const;
  // Returns the lines, each with its newline.
  std::string ToString(int columns = 0) const;

 private:
  std::vector<int> Widths(int columns) const;
  std::string Line(const std::vector<std::string>& cells, const std::vector<int>& widths) const;
  // Returns a row, which has several lines if its cells have.
  std::vector<std::string> RowLines(const std::vector<std::string>& cells,
                                    const std::vector<int>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A block of lines at the bottom of the screen. On a terminal, Redraw replaces the block in place.
// Elsewhere Redraw prints nothing, and the program reports by Print.
//
// A block of at most half the terminal's rows is drawn below the text that stands there. A taller
// block takes the alternate screen, so that none of it gets into the scrollback, whatever the user
// does with the window; Clear brings the screen before back. Each Redraw looks at the size of the
// terminal.
class LivePrinter {
 public:
  explicit LivePrinter(FILE* file = stdout);
  // For tests: writes as to a terminal of this size.
  LivePrinter(FILE* file, int columns, int rows);
  // Calls Finish.
  ~LivePrinter();
  LivePrinter(const LivePrinter&) = delete;
  LivePrinter& operator=(const LivePrinter&) = delete;

  bool live() const { return live_; }
  // Size of the area that the terminal has for a block now.
  int columns() const;
  int rows() const;

  // Draws the block. Lines longer than columns() are elided; of more than rows() lines the first
  // are shown.
  void Redraw(const std::vector<std::string>& lines);
  // Prints a line that stays above the block. On the alternate screen the newest lines stand below
  // the block until all of them are printed in the main screen.
  void Print(std::string_view line);
  // Turns the present block into ordinary output; the next Redraw starts a new block. A block on
  // the alternate screen is gone.
  void Finish();
  // Removes the block.
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
  // 0: ask the terminal each time, since it may be resized.
  int fixed_columns_ = 0, fixed_rows_ = 0;
  // Lines as last drawn.
  std::vector<std::string> lines_;
  // Lines printed on the alternate screen.
  std::vector<std::string> kept_;
  std::optional<ScreenGuard> guard_;
};

}  // namespace kiln
