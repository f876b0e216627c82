// Requirements of operators on their inputs, and ways to read inputs.
#pragma once

#include <span>
#include <vector>

#include "graph/op.h"

namespace kiln::graph {

// Types that a function accepts.
enum class Domain { kFloats, kNumbers, kBools, kWholeNumbers, kAny };

// These functions fail the writer if the requirement is not met.
void RequireDomain(NodeWriter& w, Domain domain, int input);
// Requires that all inputs from the first one on exist and have one type.
void RequireSameTypes(NodeWriter& w, int first);
void RequireRank(NodeWriter& w, int input, int least, int most);
// Requires as many values as the tensor has axes, each in [least, most].
void RequireList(NodeWriter& w, std::string_view attribute, std::span<const int64_t> values,
                 int rank, int64_t least, int64_t most);
// Returns the attribute if it is in [least, most], otherwise `least`.
int64_t IntBetween(NodeWriter& w, std::string_view attribute, int64_t least, int64_t most);
// Returns whether the attribute, a flag, is set. It must be 0 or 1.
bool Flag(NodeWriter& w, std::string_view attribute);
// Returns the position of the attribute's value, a name, among the choices; 0 if it is none of
// them.
size_t Choice(NodeWriter& w, std::string_view attribute, std::span<const std::string_view> choices);
// Returns the attribute's value as an element of the type. Whole numbers can't hold fractions.
dag::Value ConstantOf(NodeWriter& w, std::string_view attribute, ir::Type type);

// Returns numpy's shape of x op y op ...
std::vector<int64_t> BroadcastShape(NodeWriter& w);
// Returns whether the shape can be broadcast to the other one.
bool BroadcastsTo(std::span<const int64_t> shape, std::span<const int64_t> to);

// Returns 16-bit floats as float32, in which they are computed; the result is rounded once.
dag::Value Widened(const dag::Value& x, ir::Type type);

// IndexOf returns an element of a tensor of whole numbers as an index. A negative index counts from
// the end: FromEnd adds `extent` to it.
dag::Value IndexOf(const dag::Value& id);
dag::Value FromEnd(const dag::Value& index, int64_t extent);
// Returns the nearest index of an axis of that extent.
dag::Value Clipped(const dag::Value& index, int64_t extent);

}  // namespace kiln::graph
