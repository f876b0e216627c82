#include "base/console/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/status.h"
#include "base/text/utf8.h"

namespace kiln {
namespace {

// Returns the size of the character or escape sequence at the start of `text` (not empty).
// `columns` becomes 0 or 1.
size_t NextGlyph(std::string_view text, int& columns) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  columns = 0;
  if (text[0] == '\033' && text.size() > 1 && text[1] == '[') {
    size_t size = 2;
    while (size < text.size() && !(byte(size) >= 0x40 && byte(size) <= 0x7e)) ++size;
    return std::min(size + 1, text.size());
  }
  if (byte(0) >= 0x20 && byte(0) != 0x7f) columns = 1;
  size_t size = 1;
  if (byte(0) >= 0xc0) {
    while (size < text.size() && (byte(size) & 0xc0) == 0x80) ++size;
  }
  return size;
}

winsize SizeOf(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

constexpr std::string_view kEnterFullScreen = "\033[?1049h\033[?25l";
constexpr std::string_view kLeaveFullScreen = "\033[?25h\033[?1049l";
constexpr size_t kShownKept = 3;

// Mark behind the header for columns that do not fit.
constexpr std::string_view kLeftOut = "  ...";

// Returns the width of a table with these column widths.
int Total(const std::vector<int>& widths) {
  int total = 0;
  for (const int width : widths) total += width + (total > 0 ? 2 : 0);
  return total;
}

// Returns the size of the text that fits in a line: up to a blank if there is one, else as much as
// fits.
size_t Fitting(std::string_view text, int columns) {
  size_t size = 0, at_blank = 0;
  int width = 0;
  while (size < text.size()) {
    int glyph;
    const size_t bytes = NextGlyph(text.substr(size), glyph);
    if (text[size] == ' ') at_blank = size;
    if (width + glyph > columns) return at_blank > 0 ? at_blank : std::max(size, bytes);
    width += glyph;
    size += bytes;
  }
  return size;
}

// Breaks the text into at most `most` lines of `columns`. Text that does not fit in the last line
// is cut there.
std::vector<std::string> WrapCell(std::string_view text, int columns, int most) {
  std::vector<std::string> lines;
  while (static_cast<int>(lines.size()) + 1 < most && DisplayWidth(text) > columns) {
    const size_t size = Fitting(text, columns);
    lines.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  lines.push_back(Elide(text, columns));
  return lines;
}

std::string Spaces(int count) { return std::string(std::max(0, count), ' '); }

}  // namespace

bool IsTerminal(int fd) { return isatty(fd) == 1; }

int TerminalColumns(int fd) {
  const char* text = std::getenv("COLUMNS");
  const int given = text == nullptr ? 0 : std::atoi(text);
  if (given > 0) return given;
  const int columns = SizeOf(fd).ws_col;
  return columns > 0 ? columns : 80;
}

int TerminalRows(int fd) {
  const int rows = SizeOf(fd).ws_row;
  return rows > 0 ? rows : 24;
}

int OutputColumns(int fd) { return IsTerminal(fd) ? TerminalColumns(fd) : 0; }

bool UseColor(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  return IsTerminal(fd) && term != nullptr && std::string_view(term) != "dumb";
}

std::string Colored(std::string_view text, Color color, bool on) {
  if (!on) return std::string(text);
  constexpr int kCodes[] = {1, 2, 31, 32, 33, 36};
  return fmt::format("\033[{}m{}\033[0m", kCodes[static_cast<int>(color)], text);
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    int columns;
    text.remove_prefix(NextGlyph(text, columns));
    width += columns;
  }
  return width;
}

std::string Elide(std::string_view text, int columns) {
  columns = std::max(0, columns);
  if (DisplayWidth(text) <= columns) return std::string(text);
  const std::string dots = columns >= 4 ? "..." : "";
  int left = columns - static_cast<int>(dots.size());
  std::string result;
  bool colored = false;
  while (!text.empty()) {
    int width;
    const size_t size = NextGlyph(text, width);
    if (width > left) break;
    left -= width;
    colored |= text[0] == '\033';
    result += text.substr(0, size);
    text.remove_prefix(size);
  }
  return result + dots + (colored ? "\033[0m" : "");
}

std::vector<std::string> WrapParts(std::string_view text, int columns) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t end = std::min(text.find("  "), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 2, text.size()));
    const int width = DisplayWidth(lines.back());
    if (width > 0 && columns > 0 && width + 2 + DisplayWidth(part) > columns) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += "  ";
    lines.back() += part;
  }
  return lines;
}

void Table::AddRow(std::vector<std::string> cells) {
  KILN_CHECK(cells.size() == columns_.size(), "{} cells for {} columns", cells.size(),
             columns_.size());
  for (std::string& cell : cells) {
    cell = Printable(cell);
    std::ranges::replace(cell, '\n', ' ');
  }
  rows_.push_back(std::move(cells));
}

std::vector<int> Table::Widths(int columns) const {
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(DisplayWidth(columns_[i].header));
    for (const auto& row : rows_) widths.back() = std::max(widths.back(), DisplayWidth(row[i]));
  }
  if (columns <= 0) return widths;
  std::vector<int> minimum = widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].least == 0) continue;
    minimum[i] = std::min(widths[i], std::max(columns_[i].least, DisplayWidth(columns_[i].header)));
  }
  int room = columns;
  while (minimum.size() > 1 && Total(minimum) > room) {
    minimum.pop_back();
    room = columns - DisplayWidth(kLeftOut);
  }
  widths.resize(minimum.size());
  for (int total = Total(widths); total > room; --total) {
    int* widest = nullptr;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] <= minimum[i]) continue;
      if (widest == nullptr || widths[i] > *widest) widest = &widths[i];
    }
    if (widest == nullptr) break;
    --*widest;
  }
  return widths;
}

std::string Table::Line(const std::vector<std::string>& cells,
                        const std::vector<int>& widths) const {
  std::string line;
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string cell = Elide(cells[i], widths[i]);
    const std::string fill = Spaces(widths[i] - DisplayWidth(cell));
    if (i > 0) line += "  ";
    line += columns_[i].align == kRight ? fill + cell : cell + fill;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::vector<std::string> Table::RowLines(const std::vector<std::string>& cells,
                                         const std::vector<int>& widths) const {
  std::vector<std::vector<std::string>> wrapped;
  size_t height = 1;
  for (size_t i = 0; i < widths.size(); ++i) {
    wrapped.push_back(WrapCell(cells[i], widths[i], columns_[i].lines));
    height = std::max(height, wrapped.back().size());
  }
  std::vector<std::string> lines;
  for (size_t line = 0; line < height; ++line) {
    std::vector<std::string> parts;
    for (const auto& cell : wrapped) parts.push_back(line < cell.size() ? cell[line] : "");
    lines.push_back(Line(parts, widths));
  }
  return lines;
}

std::vector<std::string> Table::Lines(int columns) const {
  const std::vector<int> widths = Widths(columns);
  std::vector<std::string> header;
  for (const Column& column : columns_) header.push_back(column.header);
  std::vector<std::string> lines = {Line(header, widths),
                                    std::string(static_cast<size_t>(Total(widths)), '-')};
  if (widths.size() < columns_.size()) lines[0] += kLeftOut;
  for (const auto& row : rows_) {
    for (std::string& line : RowLines(row, widths)) lines.push_back(std::move(line));
  }
  if (columns > 0) {
    for (std::string& line : lines) line = Elide(line, columns);
  }
  return lines;
}

std::string Table::ToString(int columns) const {
  std::string text;
  for (const std::string& line : Lines(columns)) text += line + "\n";
  return text;
}

LivePrinter::LivePrinter(FILE* file) : file_(file) {
  const char* term = std::getenv("TERM");
  live_ = IsTerminal(fileno(file)) && term != nullptr && std::string_view(term) != "dumb";
}

LivePrinter::LivePrinter(FILE* file, int columns, int rows)
    : file_(file), live_(true), fixed_columns_(columns), fixed_rows_(rows) {}

LivePrinter::~LivePrinter() { Finish(); }

int LivePrinter::columns() const {
  return fixed_columns_ > 0 ? fixed_columns_ : TerminalColumns(fileno(file_));
}

// The cursor needs the last row, because a newline there would scroll.
int LivePrinter::rows() const {
  const int all = fixed_rows_ > 0 ? fixed_rows_ : TerminalRows(fileno(file_));
  const auto kept = static_cast<int>(std::min(kept_.size(), kShownKept));
  return std::max(1, all - 1 - kept);
}

// Moves to the first row of the block. Most terminals have folded its lines if they are narrower
// now.
std::string LivePrinter::ToTop() const {
  if (full_screen()) return "\033[H";
  int up = 0;
  for (const std::string& line : lines_) {
    up += std::max(1, (DisplayWidth(line) + columns() - 1) / columns());
  }
  up = std::min(up, rows());
  return up == 0 ? "" : fmt::format("\r\033[{}A", up);
}

// Writes over the present block. A line is erased before it is written, because after a write to
// the last column, erasing to the right would take that column. The area below is erased from a row
// below the first, because some terminals move a screen that is erased as a whole into the
// scrollback.
std::string LivePrinter::Block(const std::vector<std::string>& lines) const {
  std::string text = ToTop();
  for (const std::string& line : lines) text += fmt::format("\033[2K{}\n", line);
  if (!lines.empty()) return text + "\033[J";
  return lines_.empty() ? text : text + "\033[2K\n\033[J\033[A";
}

// Writes at once, so that the block does not flicker.
void LivePrinter::Write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file_);
  std::fflush(file_);
}

void LivePrinter::EnterFullScreen() {
  Write(fmt::format("{}{}", Block({}), kEnterFullScreen));
  lines_.clear();
  guard_.emplace(fileno(file_), kEnterFullScreen, kLeaveFullScreen);
}

void LivePrinter::LeaveFullScreen() {
  guard_.reset();
  std::string text(kLeaveFullScreen);
  for (const std::string& line : kept_) text += line + "\n";
  kept_.clear();
  lines_.clear();
  Write(text);
}

void LivePrinter::Redraw(const std::vector<std::string>& lines) {
  if (!live_) return;
  const auto height = static_cast<size_t>(rows());
  if (!full_screen() && lines.size() > (height + 1) / 2) EnterFullScreen();
  std::vector<std::string> shown;
  for (const std::string& line : lines) {
    if (shown.size() < height) shown.push_back(Elide(line, columns()));
  }
  for (size_t i = kept_.size() - std::min(kept_.size(), kShownKept); i < kept_.size(); ++i) {
    shown.push_back(Elide(kept_[i], columns()));
  }
  Write(Block(shown));
  lines_ = std::move(shown);
}

void LivePrinter::Print(std::string_view line) {
  if (full_screen()) {
    kept_.emplace_back(line);
    return;
  }
  const std::string erase = Block({});
  const std::vector<std::string> lines = std::exchange(lines_, {});
  Write(fmt::format("{}{}\n{}", erase, line, Block(lines)));
  lines_ = lines;
}

void LivePrinter::Finish() {
  if (full_screen()) LeaveFullScreen();
  lines_.clear();
}

void LivePrinter::Clear() {
  if (full_screen()) return LeaveFullScreen();
  if (!lines_.empty()) Write(Block({}));
  lines_.clear();
}

}  // namespace kiln
