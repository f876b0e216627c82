#include "compiler/dag/input_range.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "compiler/dag/index_limit.h"
#include "compiler/dag/text.h"
#include "compiler/ir/scalar.h"

namespace kiln::dag {
namespace {

// Returns the largest finite value.
double LargestOf(ir::Type type) {
  if (type.is_float()) return ir::LargestFinite(type);
  // The bounds of an int64 are doubles here, which hold whole numbers up to 2^53.
  return std::ldexp(1.0, std::min(53, type.is_unsigned() ? type.bits : type.bits - 1));
}

std::string RangeText(const InputRange& range) {
  return fmt::format("range [{}, {}) of input {}", range.low, range.high, range.input);
}

StatusOr<double> ParseNumber(std::string_view text) {
  const std::string number(text);
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || end != number.c_str() + number.size() || !std::isfinite(value)) {
    return InvalidArgument("'{}' is no number", text);
  }
  return value;
}

}  // namespace

StatusOr<int64_t> RunOf(double number) {
  if (number >= 1 && number <= 0x1p53 && number == std::floor(number))
    return static_cast<int64_t>(number);
  return InvalidArgument("a run of {} values, expected a whole number from 1 on", number);
}

Status CheckInputRange(const InputRange& range, ir::Type type, int64_t index_limit) {
  const std::string what = RangeText(range);
  if (type == ir::kBool) return InvalidArgument("{}: a bool has no range", what);
  // The condition is also true if an end is NaN.
  if (!(range.low < range.high)) {
    return InvalidArgument("{}: expected a low end below the high end", what);
  }
  const double largest = LargestOf(type);
  const double smallest = type.is_unsigned() ? 0 : -largest;
  if (range.low < smallest || range.high > largest) {
    return InvalidArgument("{}: values of {} lie between {} and {}", what, TypeName(type), smallest,
                           largest);
  }
  if (range.run < 0) return InvalidArgument("{}: a run of {} values", what, range.run);
  if (type.is_float()) {
    if (range.run == 0) return OkStatus();
    return InvalidArgument("{}: values of {} cannot ascend in runs, only integers can", what,
                           TypeName(type));
  }
  if (range.low != std::floor(range.low) || range.high != std::floor(range.high)) {
    return InvalidArgument("{}: expected whole numbers for {}", what, TypeName(type));
  }
  if (index_limit > 0 && (range.low < 0 || range.high > static_cast<double>(index_limit))) {
    return InvalidArgument("{}: its values are indices, which lie in [0, {})", what, index_limit);
  }
  return OkStatus();
}

Status CheckInputRanges(const Dag& dag, std::span<const InputRange> ranges) {
  if (ranges.empty()) return OkStatus();
  const std::vector<std::string> names = DisplayNames(dag);
  const std::vector<int64_t> limits = IndexLimits(dag);
  std::vector<std::string> inputs;
  for (int i = 0; i < dag.size(); ++i) {
    if (dag.op(i).is_placeholder()) inputs.push_back(names[static_cast<size_t>(i)]);
  }
  for (const InputRange& range : ranges) {
    if (std::ranges::find(inputs, range.input) == inputs.end()) {
      return NotFound("there is no input {}, expected one of: {}", range.input,
                      fmt::join(inputs, ", "));
    }
    if (std::ranges::count(ranges, range.input, &InputRange::input) > 1) {
      return InvalidArgument("input {} has two ranges", range.input);
    }
    const auto i = static_cast<int>(std::ranges::find(names, range.input) - names.begin());
    const ir::Type type = dag.op(i).type();
    const int64_t limit = type.is_int() ? limits[static_cast<size_t>(i)] : 0;
    KILN_RETURN_IF_ERROR(CheckInputRange(range, type, limit));
  }
  return OkStatus();
}

std::string PrintValues(const InputRange& range) {
  std::string text = fmt::format("values in [{}, {})", range.low, range.high);
  if (range.run > 0) text += fmt::format(", ascending in runs of {}", range.run);
  return text;
}

StatusOr<InputRange> ParseInputRange(std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    return InvalidArgument(
        "input range '{}': {}; expected NAME=LOW:HIGH, for instance x=0.5:2, or NAME=LOW:HIGH:RUN",
        text, why);
  };
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return refuse("it names no input");
  const std::string_view ends = text.substr(equals + 1);
  const size_t colon = ends.find(':');
  if (colon == std::string_view::npos) return refuse("it has no ':'");
  InputRange range;
  range.input = std::string(text.substr(0, equals));
  const auto low = ParseNumber(ends.substr(0, colon));
  if (!low.ok()) return refuse(std::string(Message(low.status())));
  const std::string_view rest = ends.substr(colon + 1);
  const size_t second = rest.find(':');
  if (second != std::string_view::npos) {
    const auto number = ParseNumber(rest.substr(second + 1));
    if (!number.ok()) return refuse(std::string(Message(number.status())));
    const auto run = RunOf(*number);
    if (!run.ok()) return refuse(std::string(Message(run.status())));
    range.run = *run;
  }
  const auto high = ParseNumber(rest.substr(0, second));
  if (!high.ok()) return refuse(std::string(Message(high.status())));
  range.low = *low;
  range.high = *high;
  return range;
}

}  // namespace kiln::dag
