#include "compiler/schedule/dags_testing.h"

#include "compiler/dag/builder.h"

namespace kiln::schedule {
namespace {

using dag::Combiner;
using dag::DagBuilder;
using dag::TensorRef;
using dag::Value;
using dag::Vars;

constexpr ir::Type kType = ir::kFloat32;

dag::DagPtr Finish(DagBuilder& b) {
  StatusOr<dag::DagPtr> dag = b.Build();
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return *std::move(dag);
}

std::vector<dag::Axis> Nhwc(int64_t size, int64_t channels) {
  return {{"n", 1}, {"h", size}, {"w", size}, {"c", channels}};
}

TensorRef Pad(DagBuilder& b, const TensorRef& data, int64_t size, int64_t channels, int64_t padding,
              double value) {
  return b.Compute("pad", Nhwc(size + 2 * padding, channels), [&](Vars v) {
    const Value inside =
        v[1] >= padding && v[1] < size + padding && v[2] >= padding && v[2] < size + padding;
    return If(inside, data(v[0], v[1] - padding, v[2] - padding, v[3]), value);
  });
}

TensorRef BiasRelu(DagBuilder& b, const TensorRef& x, int64_t size, int64_t channels) {
  const TensorRef bias = b.Placeholder("bias", kType, {1, 1, 1, channels});
  const TensorRef add = b.Compute("add", Nhwc(size, channels), [&](Vars v) {
    return x(v[0], v[1], v[2], v[3]) + bias(v[0], 0, 0, v[3]);
  });
  return b.Compute("relu", Nhwc(size, channels),
                   [&](Vars v) { return Max(add(v[0], v[1], v[2], v[3]), 0); });
}

}  // namespace

dag::DagPtr MatmulRelu(int64_t m, int64_t n, int64_t k) {
  DagBuilder b;
  const TensorRef a = b.Placeholder("A", kType, {m, k});
  const TensorRef c = b.Placeholder("B", kType, {k, n});
  const TensorRef product = b.Reduce("C", {{"i", m}, {"j", n}}, {{"k", k}}, Combiner::kSum,
                                     [&](Vars v) { return a(v[0], v[2]) * c(v[2], v[1]); });
  b.Compute("D", {{"i", m}, {"j", n}}, [&](Vars v) { return Max(product(v[0], v[1]), 0); });
  return Finish(b);
}

dag::DagPtr TwoElementwise(int64_t m, int64_t n) {
  DagBuilder b;
  const TensorRef a = b.Placeholder("A", kType, {m, n});
  const TensorRef c =
      b.Compute("B", {{"i", m}, {"j", n}}, [&](Vars v) { return a(v[0], v[1]) + 1; });
  b.Compute("C", {{"i", m}, {"j", n}}, [&](Vars v) { return c(v[0], v[1]) * 2; });
  return Finish(b);
}

dag::DagPtr ReduceAll(Combiner combiner, int64_t m, int64_t n) {
  DagBuilder b;
  const TensorRef a = b.Placeholder("A", kType, {m, n});
  b.Reduce("S", {}, {{"i", m}, {"j", n}}, combiner, [&](Vars v) { return a(v[0], v[1]); });
  return Finish(b);
}

dag::DagPtr ReduceRows(Combiner combiner, int64_t m, int64_t n, int64_t k) {
  DagBuilder b;
  const TensorRef a = b.Placeholder("A", kType, {m, n, k});
  b.Reduce("S", {{"i", m}}, {{"j", n}, {"k", k}}, combiner,
           [&](Vars v) { return a(v[0], v[1], v[2]); });
  return Finish(b);
}

dag::DagPtr ArgMaxRows(int64_t m, int64_t k) {
  DagBuilder b;
  const TensorRef a = b.Placeholder("A", kType, {m, k});
  b.ReduceArg("S", {{"i", m}}, {{"k", k}}, Combiner::kArgMax,
              [&](Vars v) { return std::pair(v[1], a(v[0], v[1])); });
  return Finish(b);
}

dag::DagPtr TwoSums(int64_t m, int64_t k) {
  DagBuilder b;
  const TensorRef a = b.Placeholder("A", kType, {m, k});
  b.Tuple("S", {{"i", m}}, {{"k", k}}, Combiner::kSum,
          [&](Vars v) { return std::vector<Value>{a(v[0], v[1]), a(v[0], v[1]) * a(v[0], v[1])}; });
  return Finish(b);
}

dag::DagPtr Conv2d(const ConvShape& s, bool epilogue) {
  DagBuilder b;
  const int64_t out = (s.size + 2 * s.padding - s.kernel) / s.stride + 1;
  const TensorRef data = b.Placeholder("data", kType, {1, s.size, s.size, s.in_channels});
  const TensorRef pad = Pad(b, data, s.size, s.in_channels, s.padding, 0);
  const TensorRef weight =
      b.Placeholder("weight", kType, {s.kernel, s.kernel, s.in_channels, s.out_channels});
  const TensorRef conv = b.Reduce(
      "conv", Nhwc(out, s.out_channels),
      {{"rh", s.kernel}, {"rw", s.kernel}, {"rc", s.in_channels}}, Combiner::kSum, [&](Vars v) {
        return pad(v[0], v[1] * s.stride + v[4], v[2] * s.stride + v[5], v[6]) *
               weight(v[4], v[5], v[6], v[3]);
      });
  if (epilogue) BiasRelu(b, conv, out, s.out_channels);
  return Finish(b);
}

dag::DagPtr Dense(int64_t m, int64_t n, int64_t k) {
  DagBuilder b;
  const TensorRef data = b.Placeholder("data", kType, {m, k});
  const TensorRef weight = b.Placeholder("weight", kType, {n, k});
  const TensorRef dense = b.Reduce("dense", {{"i", m}, {"j", n}}, {{"k", k}}, Combiner::kSum,
                                   [&](Vars v) { return data(v[0], v[2]) * weight(v[1], v[2]); });
  const TensorRef bias = b.Placeholder("bias", kType, {1, n});
  b.Compute("add", {{"i", m}, {"j", n}}, [&](Vars v) { return dense(v[0], v[1]) + bias(0, v[1]); });
  return Finish(b);
}

dag::DagPtr Softmax(int64_t m, int64_t n) {
  DagBuilder b;
  const TensorRef data = b.Placeholder("data", kType, {m, n});
  const TensorRef max = b.Reduce("max", {{"i", m}}, {{"k", n}}, Combiner::kMax,
                                 [&](Vars v) { return data(v[0], v[1]); });
  const TensorRef exp = b.Compute("exp", {{"i", m}, {"j", n}},
                                  [&](Vars v) { return Exp(data(v[0], v[1]) - max(v[0])); });
  const TensorRef sum = b.Reduce("sum", {{"i", m}}, {{"k", n}}, Combiner::kSum,
                                 [&](Vars v) { return exp(v[0], v[1]); });
  b.Compute("norm", {{"i", m}, {"j", n}}, [&](Vars v) { return exp(v[0], v[1]) / sum(v[0]); });
  return Finish(b);
}

dag::DagPtr Attention(int64_t batch, int64_t rows, int64_t keys, int64_t size) {
  DagBuilder b;
  const TensorRef query = b.Placeholder("Q", kType, {batch, rows, size}),
                  key = b.Placeholder("K", kType, {batch, keys, size}),
                  value = b.Placeholder("V", kType, {batch, keys, size});
  const std::vector<dag::Axis> row = {{"b", batch}, {"i", rows}},
                               all = {{"b", batch}, {"i", rows}, {"j", keys}},
                               out = {{"b", batch}, {"i", rows}, {"d", size}};
  const TensorRef scores = b.Reduce("scores", all, {{"k", size}}, Combiner::kSum, [&](Vars v) {
    return query(v[0], v[1], v[3]) * key(v[0], v[2], v[3]);
  });
  const TensorRef max = b.Reduce("max", row, {{"n", keys}}, Combiner::kMax,
                                 [&](Vars v) { return scores(v[0], v[1], v[2]); });
  const TensorRef exp =
      b.Compute("exp", all, [&](Vars v) { return Exp(scores.At(v) - max(v[0], v[1])); });
  const TensorRef sum = b.Reduce("sum", row, {{"n", keys}}, Combiner::kSum,
                                 [&](Vars v) { return exp(v[0], v[1], v[2]); });
  const TensorRef values = b.Reduce("values", out, {{"n", keys}}, Combiner::kSum, [&](Vars v) {
    return exp(v[0], v[1], v[3]) * value(v[0], v[3], v[2]);
  });
  b.Compute("output", out, [&](Vars v) { return values.At(v) / sum(v[0], v[1]); });
  return Finish(b);
}

dag::DagPtr AvgPool(int64_t size, int64_t channels) {
  DagBuilder b;
  const TensorRef data = b.Placeholder("data", kType, {1, size, size, channels});
  const TensorRef sum =
      b.Reduce("sum", Nhwc(1, channels), {{"rh", size}, {"rw", size}}, Combiner::kSum,
               [&](Vars v) { return data(v[0], v[1] + v[4], v[2] + v[5], v[3]); });
  b.Compute("avg", Nhwc(1, channels),
            [&](Vars v) { return sum(v[0], v[1], v[2], v[3]) / static_cast<double>(size * size); });
  return Finish(b);
}

dag::DagPtr MaxPool(int64_t size, int64_t channels) {
  DagBuilder b;
  const TensorRef data = b.Placeholder("data", kType, {1, size, size, channels});
  const TensorRef pad = Pad(b, data, size, channels, 1, -1e30);
  const TensorRef max =
      b.Reduce("max", Nhwc(size / 2, channels), {{"rh", 3}, {"rw", 3}}, Combiner::kMax,
               [&](Vars v) { return pad(v[0], v[1] * 2 + v[4], v[2] * 2 + v[5], v[3]); });
  BiasRelu(b, max, size / 2, channels);
  return Finish(b);
}

}  // namespace kiln::schedule
