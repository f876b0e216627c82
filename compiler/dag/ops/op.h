// What an operator of the library is: a name, parameters, and a function that writes it into a DAG.
// Adding one: docs/operators.md, last section.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/dag/builder.h"

namespace kiln::dag {

inline constexpr int64_t kMaxExtent = int64_t{1} << 31;

struct Parameter {
  std::string name;
  std::string doc;
  int64_t min = 1;
  int64_t max = kMaxExtent;
  std::optional<int64_t> default_value = {};  // none: must be given
  bool list = false;  // may be given by name any number of times, never by position
};

// Values for one use of an operator, checked against its parameters.
class OpArgs {
 public:
  int64_t operator[](std::string_view name) const;  // of a parameter that is not a list
  const std::vector<int64_t>& list(std::string_view name) const;  // empty when not given
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  const std::vector<int64_t>& shape() const { return shape_; }  // of an operator that takes a shape
  void Set(const std::string& name, int64_t value) { values_[name] = {value}; }
  void Append(const std::string& name, int64_t value) { values_[name].push_back(value); }
  void SetShape(std::vector<int64_t> shape) { shape_ = std::move(shape); }

 private:
  std::map<std::string, std::vector<int64_t>, std::less<>> values_;
  std::vector<int64_t> shape_;
};

// Where an operator is written to. Inputs are called p0, p1, ... in the order they are asked for.
class OpContext {
 public:
  OpContext(DagBuilder& builder, const OpArgs& args, ir::Type type, ir::Type out_type,
            ir::Type result_type)
      : b(builder), args(args), type(type), out_type(out_type), result_type(result_type) {}

  // Written over tensors that are there already: the first input that is asked for is the first of
  // them. They must have the types and shapes that are asked for.
  OpContext(DagBuilder& builder, const OpArgs& args, ir::Type type, ir::Type out_type,
            ir::Type result_type, std::vector<TensorRef> inputs)
      : b(builder),
        args(args),
        type(type),
        out_type(out_type),
        result_type(result_type),
        given_(std::move(inputs)) {}

  TensorRef Input(std::vector<int64_t> shape) { return Input(std::move(shape), type); }
  TensorRef Input(std::vector<int64_t> shape, ir::Type input_type);
  // As the type that products are made and summed in.
  Value Widen(const Value& v) const { return v.expr() == nullptr ? v : Cast(out_type, v); }

  template <typename... Args>
  void Fail(fmt::format_string<Args...> format, Args&&... fail_args) {
    b.Fail(InvalidArgument(format, std::forward<Args>(fail_args)...));
  }

  // Axis `value` of the input's shape, counted from the end when negative; fails and is empty when
  // there is no such axis.
  std::optional<size_t> AxisAt(std::string_view parameter, int64_t value);
  // Fails for integers: operators that divide or take roots.
  void RequireFloat();

  DagBuilder& b;
  const OpArgs& args;
  const ir::Type type;         // of inputs
  const ir::Type out_type;     // of accumulators, and of results before the epilogue
  const ir::Type result_type;  // of results, and of inputs of the epilogue

 private:
  std::vector<TensorRef> given_;
  int num_inputs_ = 0;
};

// Of sums over that type: int32 for int8, float32 for 16-bit floats, else the type. And of results.
ir::Type AccumulatorType(ir::Type type);
ir::Type ResultType(ir::Type type);

// Another operator that does the same work, when a constant input of it has been prepared before.
struct AlgorithmVariant {
  std::string name;      // "winograd F(4,3)"
  std::string op, args;  // "conv2d_winograd_nhwc", "1,56,56,64,64,pad=1,tile=4,by_rows=1"
  int prepared = 1;      // the input p`prepared` is what the next operator makes of the original's
  std::string prepare_op, prepare_args;  // "conv2d_winograd_weights", "64,64,tile=4,by_rows=1"
};

struct OpInfo {
  std::string name;
  std::string family;
  std::string doc;
  bool takes_shape =
      false;         // the positional arguments are the extents of the input; parameters go by name
  int min_rank = 1;  // of that shape
  std::vector<Parameter> parameters = {};
  int channel_axis = -1;  // of the result, for bias and scale; negative: from the end
  std::function<TensorRef(OpContext&)> build = {};
  // Null: it has none.
  std::function<std::vector<AlgorithmVariant>(const OpArgs&, ir::Type dtype, bool gpu)> variants =
      {};
};

// One call per family file; the registry puts them together.
std::vector<OpInfo> MatmulOps();
std::vector<OpInfo> AttentionOps();
std::vector<OpInfo> ConvOps();
std::vector<OpInfo> ConvTransposeOps();
std::vector<OpInfo> DepthwiseOps();
std::vector<OpInfo> WinogradOps();
std::vector<OpInfo> PoolOps();
std::vector<OpInfo> AdaptivePoolOps();
std::vector<OpInfo> SoftmaxOps();
std::vector<OpInfo> NormalizeOps();
std::vector<OpInfo> ReduceOps();
std::vector<OpInfo> PadOps();
std::vector<OpInfo> RearrangeOps();
std::vector<OpInfo> ResizeOps();
std::vector<OpInfo> UnaryOps();
std::vector<OpInfo> BinaryOps();

// Axes `prefix`0, `prefix`1, ... over a shape.
std::vector<Axis> NumberedAxes(std::string_view prefix, std::span<const int64_t> shape);

// The element of x that index v of `shape`, which x is broadcast to, reads.
Value BroadcastAt(const TensorRef& x, std::span<const int64_t> shape, Vars v);

// Zero-padding of some axes, as the convolutions and pools need it: `name`(i0, i1, ...) with axes
// called `prefix`. Padding by 0 everywhere makes a plain copy when `always`, else nothing; below 0,
// elements are cut off.
struct Padding {
  std::vector<int64_t> before, after;  // per axis
  double value = 0;
};
TensorRef Pad(OpContext& c, const TensorRef& x, std::string name, std::string_view prefix,
              const Padding& padding, bool always);

// (extent + padding - dilated kernel) / stride + 1; fails `c` when that is not positive.
int64_t WindowExtent(OpContext& c, std::string_view axis, int64_t extent, int64_t total_padding,
                     int64_t kernel, int64_t stride, int64_t dilation);

// Elementwise functions by name ("relu"); false when there is none.
bool HasUnary(std::string_view name);
std::vector<std::string> UnaryNames();
TensorRef ApplyUnary(OpContext& c, std::string_view name, const TensorRef& x);

// x itself when it has the type.
TensorRef Converted(OpContext& c, const TensorRef& x, ir::Type type);

// "add", "sub", ...: x op y with y broadcast along its axes of extent 1. Ranks are equal.
TensorRef ApplyBinary(OpContext& c, std::string_view name, const TensorRef& x, const TensorRef& y);

}  // namespace kiln::dag
