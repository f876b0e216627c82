// Networks as text, for `--as graph` and for tests.
//
//   # two layers
//   input x: float32[1, 64]
//   const w: float32[32, 64] = random(7, -0.1, 0.1)
//   const one: float32[] = [1.0]
//   const table: float32[512, 16] = data(8a3c...)
//   h: float32[1, 32] = dense(x, w)
//   y: float32[1, 32] = add(h, one)
//   a: float32[1, 16], b: float32[1, 16] = split(y) {axis: 1, sizes: [16, 16]}
//   output a, b
//
// A statement a line. `_` stands for an optional input that is not given. Types of outputs may be
// left out; a given type must be the inferred one. Names, comments and backquotes are those of
// every text form (compiler/ir/lexer.h). The elements of a constant stand in brackets, in row-major
// order, or come from a seed. A constant of more than 64 elements, or with a NaN whose bits "nan"
// does not give, is named by its digest (Constant::digest), and its elements must be given beside
// the text.
//
// ParseGraph(PrintGraph(g), constants of g) equals g. Pure functions. Any bytes may be parsed;
// errors name line and column. Cost: linear in the text, and InferTypes for each node.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Constants by their digests.
using ConstantsByDigest = std::map<std::string, ConstantPtr, std::less<>>;

inline constexpr int64_t kMaxPrintedElements = 64;

std::string PrintGraph(const Graph& graph);

// Returns the constants that the text names by their digest.
ConstantsByDigest NamedConstants(const Graph& graph);

// Refuses syntax errors, unknown operators, attributes and names, a name that is given twice,
// inputs that an operator can't take, a type that differs from the inferred one, and a constant
// that is not in `constants`.
StatusOr<Graph> ParseGraph(std::string_view text, const ConstantsByDigest& constants = {});

}  // namespace kiln::graph
