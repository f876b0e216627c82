// What a command prints for a person: tables, and a block of lines redrawn in place on a terminal.
// Piped, all of it is plain text. None of it is thread-safe; one thread owns the terminal.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

bool IsTerminal(int fd);
// Columns and rows; 80 and 24 where they cannot be told. COLUMNS, if set, overrides the columns.
int TerminalColumns(int fd);
int TerminalRows(int fd);
// Whether to send colours: a terminal that is not dumb, and NO_COLOR not set.
bool UseColor(int fd);

// Text with colour around it; unchanged when !on.
enum class Color { kBold, kDim, kRed, kGreen, kYellow, kCyan };
std::string Colored(std::string_view text, Color color, bool on);

// Columns taken by UTF-8 text; escape sequences take none. (Every other character counts as one.)
int DisplayWidth(std::string_view text);
// At most `columns` wide, with "..." at the end when something was cut.
std::string Elide(std::string_view text, int columns);

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
    int max_width = 0;  // 0: as wide as its widest cell; else longer cells are elided
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One cell per column.
  void AddRow(std::vector<std::string> cells);
  size_t rows() const { return rows_.size(); }
  // The header, a rule, the rows; two spaces between columns, no trailing blanks.
  std::vector<std::string> Lines() const;
  std::string ToString() const;  // the lines, each with its newline

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A block of lines at the bottom of the screen. On a terminal, Redraw replaces the block in place;
// elsewhere it prints nothing, and the program says what happens by Print.
class LivePrinter {
 public:
  explicit LivePrinter(FILE* file = stdout);
  // For tests: writes as to a terminal of this size.
  LivePrinter(FILE* file, int columns, int rows);
  // Leaves the block standing.
  ~LivePrinter();
  LivePrinter(const LivePrinter&) = delete;
  LivePrinter& operator=(const LivePrinter&) = delete;

  bool live() const { return live_; }

  // Lines longer than the terminal are elided; of more lines than fit, the last ones are shown.
  void Redraw(const std::vector<std::string>& lines);
  // A line that stays, above the block.
  void Print(std::string_view line);
  // The block as it stands becomes ordinary output; the next Redraw starts a new one.
  void Finish();
  // Takes the block away.
  void Clear();

 private:
  std::string EraseBlock() const;
  std::string Block() const;
  void Write(std::string_view text);

  FILE* file_;
  bool live_;
  int fixed_columns_ = 0,
      fixed_rows_ = 0;              // 0: ask the terminal each time, since it may be resized
  std::vector<std::string> lines_;  // as last drawn
};

}  // namespace kiln
