#include "client/view/short_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/console/terminal.h"

namespace kiln::client {
namespace {

struct Line {
  size_t indent = 0;
  std::string_view text;
  bool is_loop = false;
};

// Returns whether a line is a loop: "for i.0 (0,16)" is one; "C = ..." and "C auto_unroll: 512" are
// not.
bool IsLoop(std::string_view text) {
  return text.ends_with(')') && text.rfind(" (") != std::string_view::npos &&
         text.find(" = ") == std::string_view::npos;
}

std::vector<Line> LinesOf(std::string_view loops) {
  std::vector<Line> lines;
  while (!loops.empty()) {
    const std::string_view line = loops.substr(0, loops.find('\n'));
    loops.remove_prefix(std::min(loops.size(), line.size() + 1));
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view text = line.substr(indent);
    if (text.empty() || text.starts_with("Placeholder:")) continue;
    lines.push_back({indent, text, IsLoop(text)});
  }
  return lines;
}

// Shortens a loop: "for i.0 (0,16)" -> "i.0 (16)", "vectorize j.3 (0,64)" -> "vectorize j.3 (64)".
std::string LoopText(std::string_view text) {
  if (text.starts_with("for ")) text.remove_prefix(4);
  const size_t range = text.rfind("(0,");
  if (range == std::string_view::npos) return std::string(text);
  return fmt::format("{}({}", text.substr(0, range), text.substr(range + 3));
}

// Returns the tensor of a statement: "C = ..." -> "C".
std::string_view Computed(std::string_view text) {
  return text.ends_with(" = ...") ? text.substr(0, text.size() - 6) : text;
}

// Returns whether loop i holds only line i + 1.
bool HasSingleLineBody(const std::vector<Line>& lines, size_t i) {
  if (i + 1 >= lines.size() || lines[i + 1].indent <= lines[i].indent) return false;
  for (size_t k = i + 2; k < lines.size() && lines[k].indent > lines[i].indent; ++k) {
    if (lines[k].indent <= lines[i + 1].indent) return false;
  }
  return true;
}

}  // namespace

std::string ShortLoops(std::string_view loops, int columns, int lines) {
  const std::vector<Line> all = LinesOf(loops);
  std::vector<std::string> texts;
  // Stack of the lines around the current one. Each line indents its content by one step.
  // Each pair has the indents in `loops` and in the result.
  std::vector<std::pair<size_t, size_t>> outside;
  for (size_t i = 0; i < all.size(); ++i) {
    while (!outside.empty() && outside.back().first >= all[i].indent) outside.pop_back();
    const size_t indent = outside.empty() ? 0 : outside.back().second + 2;
    std::string text(indent, ' ');
    if (!all[i].is_loop) {
      texts.push_back(Elide(text.append(Computed(all[i].text)), columns));
      continue;
    }
    text += LoopText(all[i].text);
    while (HasSingleLineBody(all, i) && all[i + 1].is_loop) text += ", " + LoopText(all[++i].text);
    std::string computed;
    if (HasSingleLineBody(all, i)) {
      computed = fmt::format(": {}", Computed(all[++i].text));
    } else {
      outside.emplace_back(all[i].indent, indent);
    }
    // If the loops are too long, they are cut and the computation is kept.
    const int room = columns - DisplayWidth(computed);
    texts.push_back(Elide(Elide(text, room) + computed, columns));
  }
  std::string out;
  const auto count = static_cast<int>(texts.size());
  const int shown = count <= lines ? count : lines - 1;
  for (int i = 0; i < shown; ++i) out += texts[static_cast<size_t>(i)] + "\n";
  if (shown < count) out += fmt::format("... and {} more lines\n", count - shown);
  return out;
}

}  // namespace kiln::client
