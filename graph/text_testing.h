// Networks of tests, by their texts.
#pragma once

#include <string>
#include <string_view>

#include "graph/text.h"

namespace kiln::graph {

// Parses a text, which must be valid.
inline Graph ParsedGraph(std::string_view text) {
  StatusOr<Graph> graph = ParseGraph(text);
  KILN_CHECK(graph.ok(), "{}", std::string(graph.status().message()));
  return *std::move(graph);
}

// A network of convolutions with a bias, a pool, a residual, a join of two branches, a view, and a
// product. Its outputs are the last value, values in the middle, and a constant.
inline constexpr std::string_view kSmallImageNetwork = R"(
input x: float32[1, 4, 9, 7]
const w: float32[6, 4, 3, 3] = random(1, -1, 1)
const v: float32[6, 6, 1, 1] = random(2, -1, 1)
const b: float32[1, 6, 1, 1] = [1, 2, 3, 4, 5, 6]
const f: float32[12, 5] = random(5, -1, 1)
c = conv(x, w) {pads: [1, 1, 1, 1], strides: [2, 2]}
cb = add(c, b)
r = relu(cb)
p = max_pool(r) {kernel: [3, 3], pads: [1, 1, 1, 1]}
e = conv(p, v)
s = add(e, r)
t = concat(s, p) {axis: 1}
g = global_avg_pool(t)
u = reshape(g) {shape: [1, 12]}
y = matmul(u, f)
output y, s, u, b)";

// Two units of a residual network whose activations stand before the convolutions. The value s of
// the first unit is read directly, and by the second unit through m, a and r; it is an output, too.
inline constexpr std::string_view kTwoResidualUnits = R"(
input x: float32[1, 6, 5, 8]
const w: float32[3, 3, 8, 8] = random(1, -1, 1)
const scale: float32[8] = random(2, -1, 1)
const shift: float32[8] = random(3, -1, 1)
p = conv(x, w) {pads: [1, 1, 1, 1], channels_last: 1}
s = add(p, x)
m = mul(s, scale)
a = add(m, shift)
r = relu(a)
q = conv(r, w) {pads: [1, 1, 1, 1], channels_last: 1}
y = add(q, s)
output y, s)";

}  // namespace kiln::graph
