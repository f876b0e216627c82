#include "graph/op_cases_testing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "graph/node_dag.h"
#include "graph/text.h"

namespace kiln::graph {
namespace {

std::vector<OpCase> WrittenCases() {
  return {
      {"logical_not(a)", {"bool[5, 7]"}},
      {"gelu(a)", {"float16[5, 7]"}},
      {"abs(a)", {"int8[5, 7]"}},
      {"cast(a) {to: int32}", {"float32[5, 7]"}},
      {"clip(a) {min: -0.5}", {"float32[5, 7]"}},
      {"add(a, b)", {"float32[3, 1, 7]", "float32[5, 1]"}},
      {"sub(a, b)", {"float16[5, 7]", "float16[]"}},
      {"mul(a, b)", {"float32[5, 7]", "float32[7]"}},
      {"div(a, b)", {"int64[5, 7]", "int64[5, 7]"}},
      {"maximum(a, b)", {"float32[5, 7]", "float32[7]"}},
      {"minimum(a, b)", {"int32[5, 7]", "int32[7]"}},
      {"power(a, b)", {"float32[5, 7]", "float32[]"}},
      {"mod(a, b)", {"int32[5, 7]", "int32[5, 7]"}},
      {"fmod(a, b)", {"int32[5, 7]", "int32[5, 7]"}},
      {"equal(a, b)", {"int64[5, 7]", "int64[7]"}},
      {"not_equal(a, b)", {"float32[5, 7]", "float32[7]"}},
      {"less(a, b)", {"float32[5, 7]", "float32[7]"}},
      {"less_equal(a, b)", {"float32[5, 7]", "float32[7]"}},
      {"greater(a, b)", {"float32[5, 7]", "float32[7]"}},
      {"greater_equal(a, b)", {"float32[5, 7]", "float32[7]"}},
      {"logical_and(a, b)", {"bool[5, 7]", "bool[7]"}},
      {"logical_or(a, b)", {"bool[5, 7]", "bool[7]"}},
      {"logical_xor(a, b)", {"bool[5, 7]", "bool[7]"}},
      {"prelu(a, b)", {"float32[5, 7]", "float32[7]"}},
      {"where(a, b, c)", {"bool[5, 1]", "float32[5, 7]", "float32[]"}},
      {"matmul(a, b)", {"float32[5, 7]", "float32[7, 3]"}},
      {"matmul(a, b) {transpose_b: 1}", {"float16[2, 5, 7]", "float16[3, 7]"}},
      {"conv(a, b) {strides: [2, 1], pads: [1, 0, 1, 2]}",
       {"float32[1, 3, 7, 5]", "float32[4, 3, 3, 2]"}},
      {"conv(a, b) {pads: [1, 1], groups: 2, channels_last: 1}",
       {"float16[1, 9, 4]", "float16[3, 2, 6]"}},
      {"conv(a, b) {pads: [1, 1], groups: 2, channels_last: 1, output_first: 1}",
       {"float32[1, 9, 4]", "float32[6, 3, 2]"}},
      {"conv(a, b) {dilations: [1, 2, 1]}", {"int8[1, 2, 3, 5, 3]", "int8[3, 2, 2, 2, 2]"}},
      {"depthwise_conv(a, b) {pads: [1, 1, 0, 1]}", {"float32[1, 3, 6, 5]", "float32[3, 2, 3, 3]"}},
      {"depthwise_conv(a, b) {strides: [2], channels_last: 1}",
       {"float32[2, 9, 3]", "float32[3, 3, 1]"}},
      {"conv_transpose(a, b) {strides: [2, 3], pads: [1, 0, 0, 1], output_padding: [0, 1]}",
       {"float32[1, 4, 3, 4]", "float32[4, 3, 3, 4]"}},
      {"conv_transpose(a, b) {strides: [2], groups: 2, channels_last: 1}",
       {"float32[1, 5, 4]", "float32[4, 4, 3]"}},
      {"conv_transpose(a, b) {pads: [1, 1, 1, 1]}", {"float32[1, 2, 5, 4]", "float32[2, 3, 3, 3]"}},
      {"conv_transpose(a, b) {strides: [2, 2], dilations: [2, 1]}",
       {"float32[1, 2, 3, 3]", "float32[2, 3, 3, 2]"}},
      {"winograd_conv(a, b) {tile: 2}", {"float32[1, 5, 6, 3]", "float32[4, 4, 2, 3]"}},
      {"winograd_conv(a, b) {pad: 0, by_rows: 1}", {"float32[1, 6, 7, 3]", "float32[36, 1, 3, 4]"}},
      {"winograd_weights(a) {tile: 2}", {"float32[3, 3, 2, 4]"}},
      {"winograd_weights(a) {by_rows: 1}", {"float32[3, 3, 2, 4]"}},
      {"max_pool(a) {kernel: [3, 2], strides: [2, 2], pads: [1, 0, 0, 1], ceil: 1}",
       {"float32[1, 3, 8, 7]"}},
      {"max_pool(a) {kernel: [3], dilations: [2], channels_last: 1}", {"int8[2, 9, 3]"}},
      {"max_pool_indices(a) {kernel: [3, 2], strides: [2, 2], pads: [1, 0, 1, 1]}",
       {"float32[1, 3, 8, 7]"}},
      {"avg_pool(a) {kernel: [3, 2], strides: [2, 2], pads: [1, 0, 1, 1], ceil: 1}",
       {"float32[1, 3, 8, 7]"}},
      {"avg_pool(a) {kernel: [3], strides: [2], pads: [2, 1], dilations: [2]}",
       {"float16[2, 3, 9]"}},
      {"avg_pool(a) {kernel: [3], strides: [3], pads: [1, 0], ceil: 1, count_include_pad: 1}",
       {"float32[2, 3, 9]"}},
      {"global_avg_pool(a)", {"float32[2, 5, 3, 3]"}},
      {"global_avg_pool(a) {channels_last: 1}", {"float16[2, 11, 5]"}},
      {"global_max_pool(a)", {"float32[2, 5, 3, 3, 2]"}},
      {"reduce_sum(a) {axes: [0, 2], keep_dims: 0}", {"float32[3, 5, 7]"}},
      {"reduce_prod(a)", {"float32[3, 5]"}},
      {"reduce_max(a) {axes: [-1]}", {"bool[3, 5]"}},
      {"reduce_min(a) {axes: [0]}", {"int64[3, 5]"}},
      {"reduce_mean(a) {axes: [1]}", {"float16[3, 5, 7]"}},
      {"reduce_mean(a) {axes: [1]}", {"int32[3, 5, 7]"}},
      {"arg_max(a) {axis: 1, last: 1}", {"float32[3, 5, 7]"}},
      {"arg_min(a) {axis: -1, keep_dims: 0}", {"int32[3, 5]"}},
      {"cumsum(a) {axis: 1, reverse: 1}", {"float16[3, 7]"}},
      {"cumprod(a) {axis: 0, exclusive: 1}", {"float32[3, 7]"}},
      {"bitwise_and(a, b)", {"int32[5, 7]", "int32[7]"}},
      {"bitwise_or(a, b)", {"uint8[5, 7]", "uint8[7]"}},
      {"bitwise_xor(a, b)", {"int16[5, 7]", "int16[7]"}},
      {"shift_left(a, b)", {"int32[5, 7]", "int32[7]"}},
      {"shift_right(a, b)", {"uint16[5, 7]", "uint16[7]"}},
      {"div(a, b)", {"uint8[5, 7]", "uint8[7]"}},
      {"mod(a, b)", {"uint32[5, 7]", "uint32[7]"}},
      {"div(a, b)", {"uint64[5, 7]", "uint64[7]"}},
      {"reduce_max(a) {axes: [0]}", {"uint64[5, 7]"}},
      {"reinterpret(a) {to: int32}", {"float32[5, 7]"}},
      {"reinterpret(a) {to: float16}", {"uint16[5, 7]"}},
      {"reinterpret(a) {to: uint64}", {"float64[5, 7]"}},
      {"softmax(a) {axis: 1}", {"float32[3, 5, 7]"}},
      {"log_softmax(a)", {"float16[3, 7]"}},
      {"layer_norm(a, b, c)", {"float32[5, 7]", "float32[7]", "float32[7]"}},
      {"layer_norm(a, _, b) {axis: 1}", {"float16[3, 5, 7]", "float16[7]"}},
      {"rms_norm(a, b)", {"float32[5, 7]", "float32[7]"}},
      {"batch_norm(a, b, c, d, e)",
       {"float16[2, 3, 5]", "float32[3]", "float32[3]", "float32[3]", "float32[3]"}},
      {"instance_norm(a, b, c)", {"float32[2, 3, 5, 2]", "float32[3]", "float32[3]"}},
      {"group_norm(a, b, c) {groups: 2, channels_last: 1}",
       {"float32[2, 5, 6]", "float32[6]", "float32[6]"}},
      {"lrn(a) {size: 3}", {"float32[1, 5, 7]"}},
      {"reshape(a) {shape: [6, 10, 7]}", {"float32[3, 4, 5, 7]"}},
      {"transpose(a) {axes: [1, 2, 0]}", {"float32[3, 5, 7]"}},
      {"concat(a, b, a) {axis: 1}", {"float32[3, 2, 5]", "float32[3, 4, 5]"}},
      {"split(a) {axis: 1, sizes: [2, 5]}", {"float32[3, 7]"}, 2},
      {"slice(a) {begin: [4, 1], extents: [3, 2], strides: [-2, 3]}", {"float32[5, 7]"}},
      {"pad(a) {before: [2, -1], after: [1, 3]}", {"float32[3, 5]"}},
      {"pad(a) {before: [2, 0], after: [4, -1], mode: reflect}", {"float32[3, 5]"}},
      {"pad(a) {before: [2, 0], after: [4, 1], mode: edge}", {"int8[3, 5]"}},
      {"pad(a) {before: [2, 1], after: [4, 0], mode: wrap}", {"float32[3, 5]"}},
      {"broadcast_to(a) {shape: [2, 3, 5]}", {"float32[3, 1]"}},
      {"tile(a) {repeats: [2, 1, 3]}", {"float32[2, 3, 2]"}},
      {"triangle(a) {offset: -1}", {"float32[2, 5, 4]"}},
      {"gather(a, b) {axis: 1}", {"float32[3, 5]", "int64[2, 3]"}},
      {"gather_elements(a, b) {axis: 1}", {"float32[3, 5]", "int32[2, 7]"}},
      {"gather_nd(a, b) {batch_dims: 1}", {"float32[3, 5, 7]", "int64[3, 2, 1]"}},
      {"one_hot(a) {depth: 5, axis: 0}", {"int64[7]"}},
      {"resample(a, b, c) {axis: 1}", {"float32[3, 5, 2]", "int32[7, 4]", "float32[7, 4]"}},
      {"scatter_elements(a, b, c) {axis: 1}", {"float32[3, 5]", "int64[2, 3]", "float32[2, 3]"}},
      {"scatter_elements(a, b, c) {mode: add}", {"float16[3, 5]", "int32[4, 2]", "float16[4, 2]"}},
      {"scatter_nd(a, b, c)", {"float32[3, 5]", "int64[2, 2, 1]", "float32[2, 2, 5]"}},
      {"scatter_nd(a, b, c) {mode: max}", {"int32[3, 5]", "int64[7, 2]", "int32[7]"}},
  };
}

// Functions of one float need only their name.
std::vector<OpCase> CollectCases() {
  std::vector<OpCase> cases = WrittenCases();
  for (const OpDef& op : AllOps()) {
    const bool needs_attributes = std::ranges::any_of(
        op.attributes, [](const AttributeSpec& a) { return !a.default_value && !a.is_optional; });
    if (op.pattern == OpPattern::kElementwise && op.name != "logical_not" && !needs_attributes)
      cases.push_back({op.name + "(a)", {"float32[5, 7]"}});
  }
  return cases;
}

}  // namespace

std::string OpCase::Name() const { return fmt::format("{} of {}", call, fmt::join(inputs, ", ")); }

Graph OpCase::Build() const {
  std::string text, outputs = "y0";
  for (size_t i = 0; i < inputs.size(); ++i)
    text += fmt::format("input {}: {}\n", static_cast<char>('a' + i), inputs[i]);
  for (int i = 1; i < num_outputs; ++i) outputs += fmt::format(", y{}", i);
  StatusOr<Graph> graph =
      ParseGraph(fmt::format("{}{} = {}\noutput {}\n", text, outputs, call, outputs));
  KILN_CHECK(graph.ok(), "{}: {}", Name(), std::string(graph.status().message()));
  return *std::move(graph);
}

dag::DagPtr OpCase::Write() const {
  const Graph graph = Build();
  const int nodes[] = {0};
  const StatusOr<NodeDag> written = MakeNodeDag(graph, nodes, graph.outputs());
  KILN_CHECK(written.ok(), "{}: {}", Name(), std::string(written.status().message()));
  return written->dag;
}

const std::vector<OpCase>& SmallOpCases() {
  static const std::vector<OpCase> cases = CollectCases();
  return cases;
}

}  // namespace kiln::graph
