#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/status.h"

namespace kiln {
namespace {

// The size of the character or escape sequence at the start of `text` (not empty); `columns` = 0
// or 1.
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

void Table::AddRow(std::vector<std::string> cells) {
  KILN_CHECK(cells.size() == columns_.size(), "{} cells for {} columns", cells.size(),
             columns_.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    if (columns_[i].max_width > 0) cells[i] = Elide(cells[i], columns_[i].max_width);
  }
  rows_.push_back(std::move(cells));
}

std::vector<std::string> Table::Lines() const {
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int width = DisplayWidth(columns_[i].header);
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[i]));
    widths.push_back(width);
  }
  auto line_of = [&](auto&& cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string fill = Spaces(widths[i] - DisplayWidth(cell));
      if (i > 0) line += "  ";
      line += columns_[i].align == kRight ? fill + cell : cell + fill;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  std::vector<std::string> lines;
  lines.push_back(line_of([&](size_t i) -> const std::string& { return columns_[i].header; }));
  int total = -2;
  for (int width : widths) total += width + 2;
  lines.emplace_back(std::max(0, total), '-');
  for (const auto& row : rows_) {
    lines.push_back(line_of([&](size_t i) -> const std::string& { return row[i]; }));
  }
  return lines;
}

std::string Table::ToString() const {
  std::string text;
  for (const std::string& line : Lines()) text += line + "\n";
  return text;
}

LivePrinter::LivePrinter(FILE* file) : file_(file) {
  const char* term = std::getenv("TERM");
  live_ = IsTerminal(fileno(file)) && term != nullptr && std::string_view(term) != "dumb";
}

LivePrinter::LivePrinter(FILE* file, int columns, int rows)
    : file_(file), live_(true), fixed_columns_(columns), fixed_rows_(rows) {}

LivePrinter::~LivePrinter() { Finish(); }

// Up to the first line of the block, and clear from there down.
std::string LivePrinter::EraseBlock() const {
  if (lines_.empty()) return {};
  return fmt::format("\r\033[{}A\033[J", lines_.size());
}

std::string LivePrinter::Block() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  return text;
}

// One write, so that the block does not flicker.
void LivePrinter::Write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file_);
  std::fflush(file_);
}

void LivePrinter::Redraw(const std::vector<std::string>& lines) {
  if (!live_) return;
  const int columns = fixed_columns_ > 0 ? fixed_columns_ : TerminalColumns(fileno(file_));
  const int rows = fixed_rows_ > 0 ? fixed_rows_ : TerminalRows(fileno(file_));
  const size_t shown = std::min<size_t>(lines.size(), std::max(1, rows - 1));
  const std::string erase = EraseBlock();
  lines_.clear();
  for (size_t i = lines.size() - shown; i < lines.size(); ++i) {
    lines_.push_back(Elide(lines[i], columns));
  }
  Write(erase + Block());
}

void LivePrinter::Print(std::string_view line) {
  Write(fmt::format("{}{}\n{}", EraseBlock(), line, Block()));
}

void LivePrinter::Finish() { lines_.clear(); }

void LivePrinter::Clear() {
  if (lines_.empty()) return;
  Write(EraseBlock());
  lines_.clear();
}

}  // namespace kiln
