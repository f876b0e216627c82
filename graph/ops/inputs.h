// What operators require of their inputs, and how they read them.
#pragma once

#include <span>
#include <vector>

#include "graph/op.h"

namespace kiln::graph {

// What a function may be applied to.
enum class Domain { kFloats, kNumbers, kBools, kWholeNumbers, kAny };

// These fail the writer where it is otherwise.
void RequireDomain(NodeWriter& w, Domain domain, int input);
// All inputs from the first one on are there, and of one type.
void RequireSameTypes(NodeWriter& w, int first);
void RequireRank(NodeWriter& w, int input, int least, int most);
// As many values as the tensor has axes, each in [least, most].
void RequireList(NodeWriter& w, std::string_view attribute, std::span<const int64_t> values,
                 int rank, int64_t least, int64_t most);
// The attribute, if it is in [least, most]; else `least`.
int64_t IntBetween(NodeWriter& w, std::string_view attribute, int64_t least, int64_t most);
// Is the attribute, a flag, set? It must be 0 or 1.
bool Flag(NodeWriter& w, std::string_view attribute);
// The place of the attribute's value, a name, among the choices; 0 when it is none of them.
size_t Choice(NodeWriter& w, std::string_view attribute, std::span<const std::string_view> choices);
// The attribute's value as an element of the type: whole numbers can't hold fractions.
dag::Value ConstantOf(NodeWriter& w, std::string_view attribute, ir::Type type);

// numpy's shape of x op y op ...
std::vector<int64_t> BroadcastShape(NodeWriter& w);
// Can the shape be broadcast to the other one?
bool BroadcastsTo(std::span<const int64_t> shape, std::span<const int64_t> to);

// 16-bit floats are computed in float32 and rounded once.
dag::Value Widened(const dag::Value& x, ir::Type type);

// An element of a tensor of whole numbers as an index. Its number counts from the end when it is
// negative: then `extent` is added.
dag::Value IndexOf(const dag::Value& id);
dag::Value FromEnd(const dag::Value& index, int64_t extent);
// The nearest index of an axis of that extent.
dag::Value Clipped(const dag::Value& index, int64_t extent);

}  // namespace kiln::graph
