#include "graph/ops/inputs.h"

#include <algorithm>
#include <cmath>

#include "compiler/dag/limits.h"

namespace kiln::graph {
namespace {

using dag::Value;

bool Fits(ir::Type type, Domain domain) {
  switch (domain) {
    case Domain::kFloats:
      return type.is_float();
    case Domain::kNumbers:
      return !type.is_bool();
    case Domain::kBools:
      return type.is_bool();
    case Domain::kWholeNumbers:
      return type.is_int();
    case Domain::kAny:
      return true;
  }
  return false;
}

std::string_view DomainText(Domain domain) {
  static constexpr std::string_view kTexts[] = {"a float type", "numbers", "bool", "whole numbers",
                                                "anything"};
  return kTexts[static_cast<size_t>(domain)];
}

// 2^63 itself is no int64.
bool IsElement(ir::Type type, double value) {
  if (type.is_float() || type.is_bool()) return true;
  const double bound = std::ldexp(1.0, type.is_unsigned() ? type.bits : type.bits - 1);
  const double least = type.is_unsigned() ? 0 : -bound;
  return value == std::trunc(value) && value >= least && value < bound;
}

}  // namespace

void RequireDomain(NodeWriter& w, Domain domain, int input) {
  if (Fits(w.type(input), domain)) return;
  w.Fail("input of {}, expected {}", ir::TypeName(w.type(input)), DomainText(domain));
}

void RequireSameTypes(NodeWriter& w, int first) {
  for (int i = first + 1; i < w.num_inputs(); ++i) {
    if (!w.has_input(i)) {
      w.Fail("input {} is missing", i);
      return;
    }
    if (w.type(i) == w.type(first)) continue;
    w.Fail("inputs of {} and {}, expected the same type", ir::TypeName(w.type(first)),
           ir::TypeName(w.type(i)));
  }
}

void RequireRank(NodeWriter& w, int input, int least, int most) {
  const int rank = w.input(input).rank();
  if (rank >= least && rank <= most) return;
  w.Fail("input {} has {} dimension{}, expected {}", input, rank, rank == 1 ? "" : "s",
         least == most           ? fmt::format("{}", least)
         : most == dag::kMaxAxes ? fmt::format("at least {}", least)
                                 : fmt::format("{} to {}", least, most));
}

void RequireList(NodeWriter& w, std::string_view attribute, std::span<const int64_t> values,
                 int rank, int64_t least, int64_t most) {
  if (std::ssize(values) != rank) {
    w.Fail("{} has {} entries, expected {}: one for each axis", attribute, values.size(), rank);
  }
  for (int64_t value : values) {
    if (value < least || value > most)
      w.Fail("{} = {}, expected {} to {}", attribute, value, least, most);
  }
}

int64_t IntBetween(NodeWriter& w, std::string_view attribute, int64_t least, int64_t most) {
  const int64_t value = w.Int(attribute);
  if (value >= least && value <= most) return value;
  w.Fail("{} = {}, expected {} to {}", attribute, value, least, most);
  return least;
}

bool Flag(NodeWriter& w, std::string_view attribute) { return IntBetween(w, attribute, 0, 1) != 0; }

size_t Choice(NodeWriter& w, std::string_view attribute,
              std::span<const std::string_view> choices) {
  const auto at = std::ranges::find(choices, w.Name(attribute));
  if (at != choices.end()) return static_cast<size_t>(at - choices.begin());
  w.Fail("{} = {}, expected one of {}", attribute, w.Name(attribute), fmt::join(choices, ", "));
  return 0;
}

Value ConstantOf(NodeWriter& w, std::string_view attribute, ir::Type type) {
  double value = w.Float(attribute);
  if (!IsElement(type, value)) {
    w.Fail("{} = {} is no {}", attribute, value, ir::TypeName(type));
    value = 0;
  }
  return w.b.Constant(type.is_bool() ? value != 0 : value, type);
}

std::vector<int64_t> BroadcastShape(NodeWriter& w) {
  std::vector<int64_t> shape;
  for (int i = 0; i < w.num_inputs(); ++i) {
    const std::vector<int64_t>& other = w.shape(i);
    if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
    const size_t shift = shape.size() - other.size();
    for (size_t d = 0; d < other.size(); ++d) {
      int64_t& extent = shape[shift + d];
      if (extent != other[d] && extent != 1 && other[d] != 1) {
        w.Fail("input {} of shape [{}] does not broadcast against [{}]", i, fmt::join(other, ", "),
               fmt::join(shape, ", "));
        return shape;
      }
      extent = std::max(extent, other[d]);
    }
  }
  return shape;
}

bool BroadcastsTo(std::span<const int64_t> shape, std::span<const int64_t> to) {
  return shape.size() <= to.size() &&
         std::ranges::equal(shape, to.last(shape.size()),
                            [](int64_t a, int64_t b) { return a == b || a == 1; });
}

Value Widened(const Value& x, ir::Type type) {
  return type.is_short_float() ? Cast(ir::kFloat32, x) : x;
}

Value IndexOf(const Value& id) { return Cast(ir::kIndex, id); }

Value FromEnd(const Value& index, int64_t extent) {
  return Select(index < 0, index + extent, index);
}

Value Clipped(const Value& index, int64_t extent) { return Min(Max(index, 0), extent - 1); }

}  // namespace kiln::graph
