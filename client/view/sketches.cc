#include "client/view/sketches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/text/counted.h"
#include "base/text/units.h"
#include "base/thread_pool.h"
#include "client/view/json.h"
#include "compiler/dag/workload_key.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/step.h"
#include "compiler/schedule/steps/steps.h"
#include "compiler/target/target.h"
#include "search/space/factorization.h"
#include "search/space/online_tiles.h"
#include "search/space/sketch.h"
#include "search/space/uneven_tiles.h"

namespace kiln::client {
namespace {

bool IsBlank(const schedule::SplitStep& split) {
  return std::find(split.lengths.begin(), split.lengths.end(), 0) != split.lengths.end();
}

// The lengths of the loops into which an axis is split. They are free except for the outermost
// loop, which takes the rest of the axis.
struct Blank {
  // Position of the split among the sketch's steps.
  size_t step = 0;
  std::string axis;
  int64_t extent = 0;
  // Number of free lengths.
  int lengths = 0;
  double ways = 0;
  // Values that a length may have, ascending.
  std::vector<int64_t> values = {};
};

// Returns the axes of the splits that follow no other split, in order, such as "C_i" of "... =
// s[C].split(C_i, factors=[0, 0, 0])".
std::vector<std::string> SplitAxes(std::string_view primitives) {
  constexpr std::string_view kSplit = "].split(";
  std::vector<std::string> axes;
  while (!primitives.empty()) {
    const std::string_view line = primitives.substr(0, primitives.find('\n'));
    primitives.remove_prefix(std::min(primitives.size(), line.size() + 1));
    const size_t at = line.find(kSplit);
    if (at == std::string_view::npos || line.find("factor") == std::string_view::npos) continue;
    const std::string_view rest = line.substr(at + kSplit.size());
    axes.emplace_back(rest.substr(0, rest.find(',')));
  }
  return axes;
}

std::vector<int64_t> ValuesOf(const std::vector<int64_t>& extents) {
  std::vector<int64_t> values;
  for (const int64_t extent : extents) {
    for (const int64_t divisor : search::Divisors(extent)) values.push_back(divisor);
  }
  std::ranges::sort(values);
  const auto [first, last] = std::ranges::unique(values);
  values.erase(first, last);
  return values;
}

std::vector<Blank> BlanksOf(const search::Sketch& sketch, const search::Task& task,
                            const search::Parameters& parameters) {
  const std::vector<std::string> axes = SplitAxes(schedule::PrintPrimitives(sketch.state));
  std::vector<Blank> blanks;
  size_t splits = 0;
  for (size_t i = 0; i < sketch.steps.size(); ++i) {
    const auto* split = schedule::As<schedule::SplitStep>(*sketch.steps[i]);
    if (split == nullptr) continue;
    const size_t number = splits++;
    if (!IsBlank(*split) || split->extent <= 0) continue;
    Blank blank{.step = i,
                .axis = number < axes.size() ? axes[number] : "",
                .extent = split->extent,
                .lengths = static_cast<int>(split->lengths.size())};
    std::vector<int64_t> extents = {split->extent};
    if (search::MayBeUneven(sketch.steps, i, task.target.is_gpu(), parameters))
      extents = search::TileExtents(split->extent);
    for (const int64_t extent : extents) {
      blank.ways += static_cast<double>(search::CountFactorizations(
          extent, blank.lengths, parameters.max_innermost_split_factor));
    }
    blank.values = ValuesOf(extents);
    blanks.push_back(std::move(blank));
  }
  return blanks;
}

// Returns the number of ways to fill all blanks; a double, since there may be very many.
double CountPoints(const search::Sketch& sketch, std::span<const Blank> blanks,
                   const search::Task& task, const search::Parameters& parameters) {
  double count = 1;
  if (const schedule::OnlineTile* const tile = sketch.state.online()) {
    count *= static_cast<double>(
        search::CountOnlineTiles(*tile, search::OnlineSpaceOf(task, parameters)));
  }
  for (const Blank& blank : blanks) count *= blank.ways;
  return count;
}

// Returns "49,392", or "4.54e+09".
std::string PointsText(double points) {
  constexpr double kMaxInFull = 1e7;
  return points < kMaxInFull ? FormatCount(static_cast<int64_t>(points))
                             : fmt::format("{:.3g}", points);
}

// Returns "1, 2, 4, ..., 64".
std::string ValuesText(const std::vector<int64_t>& values) {
  constexpr size_t kShown = 10;
  if (values.size() <= kShown) return fmt::format("{}", fmt::join(values, ", "));
  const std::span<const int64_t> first = std::span(values).first(kShown - 2);
  return fmt::format("{}, ..., {}", fmt::join(first, ", "), values.back());
}

// Returns a row for a blank with its values, the outermost first.
std::string BlankLine(const Blank& blank, std::string_view lengths, std::string_view more) {
  return fmt::format("  {}: {} = {}{}\n", blank.axis, blank.extent, lengths, more);
}

std::string BlanksText(std::span<const Blank> blanks, int64_t most_innermost) {
  if (blanks.empty()) return "";
  std::string text = "\nblanks, outermost loop first, and what each ? may be\n";
  for (const Blank& blank : blanks) {
    std::string lengths = "?";
    for (int i = 0; i < blank.lengths; ++i) lengths += " * ?";
    text +=
        BlankLine(blank, lengths,
                  fmt::format("  {} ways; {}{}", PointsText(blank.ways), ValuesText(blank.values),
                              !blank.values.empty() && blank.values.back() > most_innermost
                                  ? fmt::format(", the last at most {}", most_innermost)
                                  : ""));
  }
  return text;
}

std::string BlankJson(const Blank& blank) {
  return fmt::format("{{\"axis\":{},\"extent\":{},\"lengths\":{},\"ways\":{},\"values\":[{}]}}",
                     JsonString(blank.axis), blank.extent, blank.lengths, blank.ways,
                     fmt::join(blank.values, ","));
}

// Returns the number in "sketch 1, by rule".
std::optional<size_t> SketchNumber(std::string_view origin) {
  constexpr std::string_view kName = "sketch ";
  if (!origin.starts_with(kName)) return {};
  size_t number = 0;
  const char* const begin = origin.data() + kName.size();
  const auto [end, error] = std::from_chars(begin, origin.data() + origin.size(), number);
  return error == std::errc() && end != begin ? std::optional(number) : std::nullopt;
}

// Returns the values of the blank's split in `steps`, "8 * 2 * 2 * 2"; "" if `steps` has no such
// split.
std::string FilledText(const Blank& blank, const std::vector<schedule::StepPtr>& steps) {
  if (blank.step >= steps.size()) return "";
  const auto* split = schedule::As<schedule::SplitStep>(*steps[blank.step]);
  if (split == nullptr || static_cast<int>(split->lengths.size()) != blank.lengths) return "";
  int64_t inner = 1;
  for (const int64_t length : split->lengths) inner *= std::max<int64_t>(1, length);
  const int64_t outer = (blank.extent + inner - 1) / inner;
  return fmt::format("{} * {}{}", outer, fmt::join(split->lengths, " * "),
                     outer * inner == blank.extent ? "" : ", of which the last are left out");
}

// Replaces all matches. A match may begin within the replacement of the match before.
void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; ++at)
    text.replace(at, from.size(), to);
}

// Marks blanks: loops without an extent and factors of 0.
std::string LoopsText(const search::Sketch& sketch) {
  std::string text = schedule::PrintLoops(sketch.state);
  ReplaceAll(text, "(None)", "(?)");
  return text;
}

std::string PrimitivesText(const search::Sketch& sketch) {
  std::string text = schedule::PrintPrimitives(sketch.state);
  ReplaceAll(text, "factors=[0", "factors=[?");
  ReplaceAll(text, "?, 0", "?, ?");
  ReplaceAll(text, "factor=0", "factor=?");
  for (const std::string_view number : {"rows", "keys", "warps", "depth", "parts", "splits"})
    ReplaceAll(text, fmt::format("{}=0", number), fmt::format("{}=?", number));
  return text;
}

StatusOr<search::Task> TaskOf(const dag::DagPtr& dag, const std::string& target_text) {
  KILN_ASSIGN_OR_RETURN(const target::Target target,
                        target::ParseTarget(target_text.empty() ? "llvm" : target_text));
  return search::Task(dag, target, target::DefaultHardware(target, AvailableCpus()),
                      dag::WorkloadKey(*dag));
}

}  // namespace

StatusOr<std::string> FilledBlanks(const search::Task& task, const std::string& steps_text,
                                   std::string_view origin) {
  const std::optional<size_t> number = SketchNumber(origin);
  const search::Parameters parameters;
  const std::vector<search::Sketch> sketches = search::GenerateSketches({task, parameters});
  if (!number.has_value() || *number >= sketches.size()) return std::string();
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(steps_text));
  const search::Sketch& sketch = sketches[*number];
  const std::vector<Blank> blanks = BlanksOf(sketch, task, parameters);
  if (blanks.empty()) return std::string();
  std::string text = fmt::format(
      "sketch {} with its blanks filled, one point of {} (the {} and their blanks: kiln "
      "show --sketches); the loops of each axis, outermost first:\n",
      *number, PointsText(CountPoints(sketch, blanks, task, parameters)),
      Counted(std::ssize(sketches), "sketch", "sketches"));
  for (const Blank& blank : blanks) {
    const std::string filled = FilledText(blank, steps);
    // The steps belong to another sketch.
    if (filled.empty()) return std::string();
    text += BlankLine(blank, filled, "");
  }
  return text;
}

StatusOr<int> CountSketches(const dag::DagPtr& dag, const std::string& target) {
  KILN_ASSIGN_OR_RETURN(const search::Task task, TaskOf(dag, target));
  return static_cast<int>(search::GenerateSketches({task, search::Parameters()}).size());
}

StatusOr<std::string> PrintSketches(const dag::DagPtr& dag, const std::string& target_text,
                                    bool json) {
  KILN_ASSIGN_OR_RETURN(const search::Task task, TaskOf(dag, target_text));
  const search::Parameters parameters;
  std::string text;
  int number = 0;
  for (const search::Sketch& sketch : search::GenerateSketches({task, parameters})) {
    const std::vector<Blank> blanks = BlanksOf(sketch, task, parameters);
    const double points = CountPoints(sketch, blanks, task, parameters);
    if (json) {
      std::string all;
      for (const Blank& blank : blanks) all += (all.empty() ? "" : ",") + BlankJson(blank);
      text += fmt::format("{{\"sketch\":{},\"steps\":{},\"tile_sizes\":{},\"blanks\":[{}]}}\n",
                          number++, JsonString(schedule::PrintSteps(sketch.steps)), points, all);
      continue;
    }
    text += fmt::format("{}sketch {}: {}, {} (ways to fill its blanks)\n\n{}\n{}{}",
                        number > 0 ? "\n" : "", number, Counted(std::ssize(sketch.steps), "step"),
                        points == 1 ? "1 point" : PointsText(points) + " points", LoopsText(sketch),
                        PrimitivesText(sketch),
                        BlanksText(blanks, parameters.max_innermost_split_factor));
    ++number;
  }
  return text;
}

}  // namespace kiln::client
