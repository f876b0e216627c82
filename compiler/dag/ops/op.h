// An operator of the library: a name, parameters, and a function that writes it into a DAG.
// docs/operators.md, last section, says how to add one.
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
  // None: the parameter must be given.
  std::optional<int64_t> default_value = {};
  // The parameter may be given by name any number of times, never by position.
  bool list = false;
};

// Values for one use of an operator, checked against its parameters.
class OpArgs {
 public:
  // The parameter must not be a list.
  int64_t operator[](std::string_view name) const;
  // Empty if the list is not given.
  const std::vector<int64_t>& list(std::string_view name) const;
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  // Only for an operator that takes a shape.
  const std::vector<int64_t>& shape() const { return shape_; }
  void Set(const std::string& name, int64_t value) { values_[name] = {value}; }
  void Append(const std::string& name, int64_t value) { values_[name].push_back(value); }
  void SetShape(std::vector<int64_t> shape) { shape_ = std::move(shape); }

 private:
  std::map<std::string, std::vector<int64_t>, std::less<>> values_;
  std::vector<int64_t> shape_;
};

// The builder, arguments and types with which an operator is written. Inputs are called p0, p1, ...
// in the order in which they are asked for.
class OpContext {
 public:
  OpContext(DagBuilder& builder, const OpArgs& args, ir::Type type, ir::Type out_type,
            ir::Type result_type)
      : b(builder), args(args), type(type), out_type(out_type), result_type(result_type) {}

  // Writes over existing tensors: the first input that is asked for is the first of them. They must
  // have the types and shapes that are asked for.
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
  // Converts a value to the type in which products are made and summed.
  Value Widen(const Value& v) const { return v.expr() == nullptr ? v : Cast(out_type, v); }

  template <typename... Args>
  void Fail(fmt::format_string<Args...> format, Args&&... fail_args) {
    b.Fail(InvalidArgument(format, std::forward<Args>(fail_args)...));
  }

  // Returns axis `value` of the input's shape; a negative value counts from the end. Fails and
  // returns nothing if there is no such axis.
  std::optional<size_t> AxisAt(std::string_view parameter, int64_t value);
  // Fails for integers. For operators that divide or take roots.
  void RequireFloat();

  DagBuilder& b;
  const OpArgs& args;
  // Type of inputs.
  const ir::Type type;
  // Type of accumulators, and of results before the epilogue.
  const ir::Type out_type;
  // Type of results, and of inputs of the epilogue.
  const ir::Type result_type;

 private:
  std::vector<TensorRef> given_;
  int num_inputs_ = 0;
};

// Returns the type of sums over `type`: int32 for int8, float32 for 16-bit floats, else the type
// itself. ResultType returns the type of results.
ir::Type AccumulatorType(ir::Type type);
ir::Type ResultType(ir::Type type);

// Another operator that does the same work after a constant input of it has been prepared.
struct AlgorithmVariant {
  // For example "winograd F(4,3)".
  std::string name;
  // For example "conv2d_winograd_nhwc", "1,56,56,64,64,pad=1,tile=4,by_rows=1".
  std::string op, args;
  // The input p`prepared` is the result of the preparing operator on the original's input.
  int prepared = 1;
  // For example "conv2d_winograd_weights", "64,64,tile=4,by_rows=1".
  std::string prepare_op, prepare_args;
};

struct OpInfo {
  std::string name;
  std::string family;
  std::string doc;
  // The positional arguments are the extents of the input. Parameters go by name.
  bool takes_shape = false;
  // Least rank of that shape.
  int min_rank = 1;
  std::vector<Parameter> parameters = {};
  // Axis of the result for bias and scale. A negative number counts from the end.
  int channel_axis = -1;
  std::function<TensorRef(OpContext&)> build = {};
  // Null: the operator has no variants.
  std::function<std::vector<AlgorithmVariant>(const OpArgs&, ir::Type dtype, bool gpu)> variants =
      {};
};

// Each family file has one function. The registry puts them together.
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

// Makes axes `prefix`0, `prefix`1, ... over a shape.
std::vector<Axis> NumberedAxes(std::string_view prefix, std::span<const int64_t> shape);

// Returns the element of x that is read at index v of `shape`, to which x is broadcast.
Value BroadcastAt(const TensorRef& x, std::span<const int64_t> shape, Vars v);

// Zero-padding of some axes for convolutions and pools: `name`(i0, i1, ...) with axes called
// `prefix`. Padding by 0 everywhere makes a plain copy if `always`, else nothing. Negative padding
// cuts elements off.
struct Padding {
  // One entry per axis.
  std::vector<int64_t> before, after;
  double value = 0;
};
TensorRef Pad(OpContext& c, const TensorRef& x, std::string name, std::string_view prefix,
              const Padding& padding, bool always);

// Returns (extent + padding - dilated kernel) / stride + 1. Fails `c` if that is not positive.
int64_t WindowExtent(OpContext& c, std::string_view axis, int64_t extent, int64_t total_padding,
                     int64_t kernel, int64_t stride, int64_t dilation);

// Elementwise functions by name ("relu"). HasUnary is false if there is none.
bool HasUnary(std::string_view name);
std::vector<std::string> UnaryNames();
TensorRef ApplyUnary(OpContext& c, std::string_view name, const TensorRef& x);

// Returns x itself if x has the type.
TensorRef Converted(OpContext& c, const TensorRef& x, ir::Type type);

// Applies "add", "sub", ...: x op y, with y broadcast along its axes of extent 1. Ranks must be
// equal.
TensorRef ApplyBinary(OpContext& c, std::string_view name, const TensorRef& x, const TensorRef& y);

}  // namespace kiln::dag
