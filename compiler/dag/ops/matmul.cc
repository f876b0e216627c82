// Matrix products.
#include "compiler/dag/ops/op.h"

namespace kiln::dag {
namespace {

TensorRef Matmul(OpContext& c) {
  const int64_t m = c.args["M"], n = c.args["N"], k = c.args["K"];
  TensorRef a = c.Input({m, k});
  TensorRef b = c.Input({k, n});
  return c.b.Reduce("T_matmul_NN", {{"i", m}, {"j", n}}, {{"k", k}}, Combiner::kSum,
                    [&](Vars v) { return c.Widen(a(v[0], v[2])) * c.Widen(b(v[2], v[1])); },
                    {.layout_free_placeholders = {b.name()}});
}

TensorRef Dense(OpContext& c) {
  const int64_t m = c.args["M"], n = c.args["N"], k = c.args["K"];
  TensorRef data = c.Input({m, k});
  TensorRef weight = c.Input({n, k});
  return c.b.Reduce("T_matmul_NT", {{"i", m}, {"j", n}}, {{"k", k}}, Combiner::kSum,
                    [&](Vars v) { return c.Widen(data(v[0], v[2])) * c.Widen(weight(v[1], v[2])); },
                    {.layout_free_placeholders = {weight.name()}});
}

TensorRef BatchMatmul(OpContext& c) {
  const int64_t batch = c.args["B"], m = c.args["M"], n = c.args["N"], k = c.args["K"];
  const bool ta = c.args["transpose_a"] != 0, tb = c.args["transpose_b"] != 0;
  using Shape = std::vector<int64_t>;
  TensorRef x = c.Input(ta ? Shape{batch, k, m} : Shape{batch, m, k});
  TensorRef y = c.Input(tb ? Shape{batch, n, k} : Shape{batch, k, n});
  return c.b.Reduce(fmt::format("T_batch_matmul_{}{}", ta ? 'T' : 'N', tb ? 'T' : 'N'),
                    {{"b", batch}, {"i", m}, {"j", n}}, {{"k", k}}, Combiner::kSum,
                    [&](Vars v) {
                      const Value &b = v[0], &i = v[1], &j = v[2], &r = v[3];
                      return c.Widen(ta ? x(b, r, i) : x(b, i, r)) *
                             c.Widen(tb ? y(b, j, r) : y(b, r, j));
                    },
                    {.layout_free_placeholders = {y.name()}});
}

std::vector<Parameter> MNK() {
  return {{.name = "M", .doc = "rows"},
          {.name = "N", .doc = "columns"},
          {.name = "K", .doc = "summed extent"}};
}

}  // namespace

std::vector<OpInfo> MatmulOps() {
  std::vector<Parameter> batched = MNK();
  batched.insert(batched.begin(), {.name = "B", .doc = "batch"});
  batched.push_back({.name = "transpose_a",
                     .doc = "the first input is [B, K, M]",
                     .min = 0,
                     .max = 1,
                     .default_value = 0});
  batched.push_back({.name = "transpose_b",
                     .doc = "the second input is [B, N, K]",
                     .min = 0,
                     .max = 1,
                     .default_value = 0});
  return {
      {.name = "matmul",
       .family = "matrix products",
       .doc = "[M, K] x [K, N]",
       .parameters = MNK(),
       .build = Matmul},
      {.name = "dense",
       .family = "matrix products",
       .doc = "[M, K] x [N, K] transposed: a fully connected layer",
       .parameters = MNK(),
       .build = Dense},
      {.name = "batch_matmul",
       .family = "matrix products",
       .doc = "B products [M, K] x [K, N]",
       .parameters = batched,
       .build = BatchMatmul},
  };
}

}  // namespace kiln::dag
