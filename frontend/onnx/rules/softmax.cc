// Softmax and its relatives.
#include <algorithm>

#include "base/numbers/integers.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Before version 13 these operators work on a matrix, whose columns are the axes from `axis` on. f
// gets a tensor and the one axis to work on; the result has the shape of its input.
void OverAxis(NodeContext& n, const std::function<Tensor(const Tensor&, int64_t axis)>& f) {
  n.RequireFloat(0);
  n.RequireRank(0, 1);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t axis = n.Axis(n.Int("axis", n.version() < 13 ? 1 : -1), x.rank());
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d < x.rank(); ++d) (d < axis ? rows : columns) *= x.dim(d);
  if (n.version() >= 13 || columns == x.dim(axis)) return n.SetOutput(f(x, axis));
  n.SetOutput(n.Reshape(f(n.Reshape(x, {rows, columns}), 1), x.shape()));
}

Rule Plain(std::string op, std::string name) {
  return {std::move(op), [name = std::move(name)](NodeContext& n) {
            OverAxis(n, [&](const Tensor& x, int64_t axis) {
              return n.Emit(name, {x}, {{"axis", axis}});
            });
          }};
}

// Gives 1 at the first of the largest elements, and 0 elsewhere.
void Hardmax(NodeContext& n) {
  OverAxis(n, [&](const Tensor& x, int64_t axis) {
    const Tensor most =
        n.Emit("arg_max", {x}, {{"axis", axis}, {"keep_dims", int64_t{0}}, {"last", int64_t{0}}});
    return n.Emit("one_hot", {most},
                  {{"depth", x.dim(axis)},
                   {"axis", axis},
                   {"on", 1.0},
                   {"off", 0.0},
                   {"type", std::string(ir::TypeName(x.element()))}});
  });
}

}  // namespace

std::vector<Rule> SoftmaxRules() {
  return {Plain("Softmax", "softmax"), Plain("LogSoftmax", "log_softmax"), {"Hardmax", Hardmax}};
}

}  // namespace kiln::frontend
