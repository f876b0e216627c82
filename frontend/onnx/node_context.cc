#include "frontend/onnx/node_context.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "frontend/onnx/importer.h"

namespace kiln::frontend {
namespace {

using ::onnx::AttributeProto;

constexpr int64_t kMaxCount = int64_t{1} << 30;

// Returns the number that a float of the file was written for: 0.1, not 0.100000001490116. Both
// round to the same float.
double Shortest(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

std::string KindName(int type) {
  switch (type) {
    case AttributeProto::INT:
      return "a whole number";
    case AttributeProto::FLOAT:
      return "a number";
    case AttributeProto::STRING:
      return "a text";
    case AttributeProto::INTS:
      return "a list of whole numbers";
    case AttributeProto::FLOATS:
      return "a list of numbers";
    case AttributeProto::STRINGS:
      return "a list of texts";
    case AttributeProto::TENSOR:
      return "a tensor";
    default:
      return "a graph";
  }
}

// Files of the first versions don't give the type of an attribute.
bool IsOfType(const AttributeProto& a, int type) {
  if (a.has_type() && a.type() != AttributeProto::UNDEFINED) return a.type() == type;
  switch (type) {
    case AttributeProto::INT:
      return a.has_i();
    case AttributeProto::FLOAT:
      return a.has_f();
    case AttributeProto::STRING:
      return a.has_s();
    case AttributeProto::TENSOR:
      return a.has_t();
    case AttributeProto::GRAPH:
      return a.has_g();
    default:
      return true;
  }
}

}  // namespace

const Tensor& NodeContext::input(int i) const {
  static const Tensor absent;
  return i < num_inputs() ? node_.inputs[static_cast<size_t>(i)] : absent;
}

const std::string& NodeContext::producer() const { return importer_.producer(); }

Status NodeContext::AtNode(const Status& status) const {
  return Annotate(status, fmt::format("{} of '{}'", node_.op, node_.origin));
}

void NodeContext::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

// ---- attributes

AttributeProto* NodeContext::Find(std::string_view name, int type) {
  const auto it = node_.attributes.find(name);
  if (it == node_.attributes.end()) return nullptr;
  if (IsOfType(*it->second, type)) return it->second;
  Invalid("attribute {} is not {}", name, KindName(type));
  return nullptr;
}

int64_t NodeContext::Int(std::string_view name, int64_t otherwise) {
  const AttributeProto* a = Find(name, AttributeProto::INT);
  return a == nullptr ? otherwise : a->i();
}

double NodeContext::Float(std::string_view name, double otherwise) {
  const AttributeProto* a = Find(name, AttributeProto::FLOAT);
  return a == nullptr ? otherwise : Shortest(a->f());
}

std::string NodeContext::Text(std::string_view name, std::string otherwise) {
  const AttributeProto* a = Find(name, AttributeProto::STRING);
  return a == nullptr ? otherwise : a->s();
}

Shape NodeContext::Ints(std::string_view name, Shape otherwise) {
  const AttributeProto* a = Find(name, AttributeProto::INTS);
  return a == nullptr ? otherwise : Shape(a->ints().begin(), a->ints().end());
}

std::vector<double> NodeContext::Floats(std::string_view name) {
  std::vector<double> values;
  const AttributeProto* a = Find(name, AttributeProto::FLOATS);
  if (a == nullptr) return values;
  for (float value : a->floats()) values.push_back(Shortest(value));
  return values;
}

std::vector<std::string> NodeContext::Texts(std::string_view name) {
  const AttributeProto* a = Find(name, AttributeProto::STRINGS);
  if (a == nullptr) return {};
  return {a->strings().begin(), a->strings().end()};
}

Tensor NodeContext::TensorOf(std::string_view name) {
  AttributeProto* a = Find(name, AttributeProto::TENSOR);
  if (a == nullptr) return {};
  StatusOr<Tensor> tensor = importer_.tensors().Take(*a->mutable_t());
  if (tensor.ok()) return *std::move(tensor);
  Fail(tensor.status().code() == StatusCode::kUnimplemented ? tensor.status()
                                                            : AtNode(tensor.status()));
  return Tensor::Missing();
}

int64_t NodeContext::Count(std::string_view name, int64_t otherwise, int64_t least) {
  const int64_t value = Int(name, otherwise);
  if (value >= least && value <= kMaxCount) return value;
  Invalid("attribute {} is {}, expected at least {} and at most 2^30", name, value, least);
  return otherwise;
}

Shape NodeContext::Counts(std::string_view name, int count, int64_t otherwise, int64_t least) {
  const Shape common(static_cast<size_t>(count), otherwise);
  Shape values = Ints(name, common);
  // Some exporters write the default as an empty list.
  if (values.empty()) return common;
  if (std::ssize(values) != count) {
    Invalid("attribute {} has {} numbers, expected {}", name, values.size(), count);
    return common;
  }
  for (int64_t value : values) {
    if (value >= least && value <= kMaxCount) continue;
    Invalid("attribute {} is [{}], expected numbers of at least {} and at most 2^30", name,
            fmt::join(values, ", "), least);
    return common;
  }
  return values;
}

// ---- known elements

void NodeContext::UnknownInput(std::string_view name) {
  Unsupported(
      "its input {} is computed while the network runs, and shapes are static in Kiln: export the "
      "network with static shapes",
      name);
}

Shape NodeContext::KnownInts(int i, std::string_view name) {
  const Tensor& x = input(i);
  if (failed() || !x.exists() || x.is_empty()) return {};
  if (!x.is_known()) {
    UnknownInput(name);
    return {};
  }
  if (x.element().is_float()) {
    Invalid("its input {} is {}, expected whole numbers", name, graph::TypeText(x.type));
    return {};
  }
  if (x.num_elements() > importer_.kMaxKnownInts) {
    Invalid("its input {} has {} elements", name, x.num_elements());
    return {};
  }
  return x.constant->ToInts();
}

std::vector<double> NodeContext::KnownFloats(int i, std::string_view name) {
  const Tensor& x = input(i);
  std::vector<double> values;
  if (failed() || !x.exists() || x.is_empty()) return values;
  if (!x.is_known()) {
    UnknownInput(name);
    return values;
  }
  if (x.num_elements() > importer_.kMaxKnownInts) {
    Invalid("its input {} has {} elements", name, x.num_elements());
    return values;
  }
  for (int64_t k = 0; k < x.num_elements(); ++k) values.push_back(x.constant->At(k));
  return values;
}

int64_t NodeContext::KnownInt(int i, std::string_view name) {
  const Shape values = KnownInts(i, name);
  if (values.size() == 1) return values[0];
  if (!failed()) Invalid("its input {} has {} elements, expected 1", name, values.size());
  return 0;
}

double NodeContext::KnownFloat(int i, std::string_view name) {
  const std::vector<double> values = KnownFloats(i, name);
  if (values.size() == 1) return values[0];
  if (!failed()) Invalid("its input {} has {} elements, expected 1", name, values.size());
  return 0;
}

Shape NodeContext::IntsOfAttributeOrInput(std::string_view attribute, int last_version, int i) {
  return version() <= last_version ? Ints(attribute) : KnownInts(i, attribute);
}

// ---- checks

void NodeContext::RequireRank(int i, int least, int most) {
  const Tensor& x = input(i);
  if (failed() || (x.exists() && x.rank() >= least && x.rank() <= most)) return;
  if (!x.exists()) return Invalid("input {} is missing", i);
  Invalid("input {} is {}, expected {} dimensions", i, graph::TypeText(x.type),
          least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most));
}

void NodeContext::RequireFloat(int i) {
  const Tensor& x = input(i);
  if (failed()) return;
  if (!x.exists()) return Invalid("input {} is missing", i);
  if (!x.element().is_float()) Unsupported("it is for floats only, not {}", TypeName(x.element()));
}

int64_t NodeContext::Axis(int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  Invalid("axis {} of a tensor of {} dimensions", axis, rank);
  return 0;
}

Shape NodeContext::Axes(const Shape& axes, int rank) {
  Shape normal;
  for (int64_t axis : axes) normal.push_back(Axis(axis, rank));
  std::ranges::sort(normal);
  if (std::ranges::adjacent_find(normal) != normal.end()) {
    Invalid("axes [{}] name an axis twice", fmt::join(axes, ", "));
    return {};
  }
  return normal;
}

// ---- nodes of the graph

std::vector<Tensor> NodeContext::EmitAll(std::string_view op, std::vector<Tensor> inputs,
                                         graph::Attributes attributes) {
  const auto is_missing = [](const Tensor& input) { return input.is_missing(); };
  if (failed() || std::ranges::any_of(inputs, is_missing)) return {};
  StatusOr<std::vector<Tensor>> outputs =
      importer_.writer().Add(op, inputs, std::move(attributes), node_.origin);
  if (outputs.ok()) return *std::move(outputs);
  Fail(outputs.status());
  return {};
}

Tensor NodeContext::Emit(std::string_view op, std::vector<Tensor> inputs,
                         graph::Attributes attributes) {
  std::vector<Tensor> outputs = EmitAll(op, std::move(inputs), std::move(attributes));
  return outputs.empty() ? Tensor::Missing() : std::move(outputs[0]);
}

Tensor NodeContext::Cast(const Tensor& x, ir::Type type) {
  if (x.element() == type) return x;
  if (x.is_empty()) return Tensor::Empty({type, x.shape()});
  return Emit("cast", {x}, {{"to", std::string(ir::TypeName(type))}});
}

Tensor NodeContext::Reshape(const Tensor& x, Shape shape) {
  if (failed() || x.shape() == shape) return x;
  if (x.is_empty()) {
    Tensor empty = Tensor::Empty({x.element(), std::move(shape)});
    if (!empty.is_empty()) Invalid("a tensor without elements becomes {}", TypeText(empty.type));
    return empty;
  }
  return Emit("reshape", {x}, {{"shape", std::move(shape)}});
}

Tensor NodeContext::Transpose(const Tensor& x, Shape axes) {
  if (failed() || std::ranges::is_sorted(axes)) return x;
  if (x.is_empty()) {
    Shape shape;
    for (int64_t axis : axes) shape.push_back(x.dim(axis));
    return Tensor::Empty({x.element(), std::move(shape)});
  }
  return Emit("transpose", {x}, {{"axes", std::move(axes)}});
}

Tensor NodeContext::BroadcastTo(const Tensor& x, Shape shape) {
  if (failed() || x.shape() == shape) return x;
  if (Tensor empty = Tensor::Empty({x.element(), shape}); empty.is_empty()) return empty;
  return Emit("broadcast_to", {x}, {{"shape", std::move(shape)}});
}

Tensor NodeContext::SliceAxis(const Tensor& x, int64_t axis, int64_t begin, int64_t extent,
                              int64_t stride) {
  if (failed()) return Tensor::Missing();
  Shape begins(x.shape().size(), 0), extents = x.shape(), strides(x.shape().size(), 1);
  begins[static_cast<size_t>(axis)] = begin;
  extents[static_cast<size_t>(axis)] = extent;
  strides[static_cast<size_t>(axis)] = stride;
  if (stride == 1 && extents == x.shape()) return x;
  if (Tensor empty = Tensor::Empty({x.element(), extents}); empty.is_empty()) return empty;
  return Emit("slice", {x}, {{"begin", begins}, {"extents", extents}, {"strides", strides}});
}

Tensor NodeContext::Concat(std::vector<Tensor> xs, int64_t axis) {
  if (failed() || xs.empty()) return Tensor::Missing();
  Tensor empty = xs[0];
  std::erase_if(xs, [&](const Tensor& x) {
    return x.is_empty() && x.rank() == empty.rank() && x.element() == empty.element();
  });
  if (xs.empty()) return empty;
  if (xs.size() == 1) return xs[0];
  return Emit("concat", std::move(xs), {{"axis", axis}});
}

Tensor NodeContext::Reduce(std::string_view op, const Tensor& x, Shape axes, bool keep_dims) {
  if (failed() || axes.empty()) return x;
  return Emit(op, {x}, {{"axes", std::move(axes)}, {"keep_dims", int64_t{keep_dims}}});
}

Tensor NodeContext::Gather(const Tensor& x, const Tensor& ids, int64_t axis) {
  return Emit("gather", {x, ids}, {{"axis", axis}});
}

Shape NodeContext::BroadcastShape(const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()), 1);
  for (const Shape* part : {&a, &b}) {
    const size_t shift = shape.size() - part->size();
    for (size_t d = 0; d < part->size(); ++d) {
      int64_t& extent = shape[shift + d];
      const int64_t other = (*part)[d];
      if (extent != 1 && other != 1 && extent != other) {
        Invalid("shapes [{}] and [{}] do not broadcast", fmt::join(a, ", "), fmt::join(b, ", "));
        return shape;
      }
      if (other != 1) extent = other;
    }
  }
  return shape;
}

Tensor NodeContext::Scalar(ir::Type type, double value) {
  return Tensor::Of(graph::Constant::Scalar(type, value));
}

// Takes the cost of kept elements off the budget: keeping costs as much as computing.
bool NodeContext::MayKeep(int64_t elements) {
  Fail(importer_.writer().Spend(8 * elements));
  return !failed();
}

Tensor NodeContext::Constant(ir::Type type, Shape shape, const std::vector<double>& values) {
  if (!MayKeep(std::ssize(values))) return Tensor::Missing();
  if (values.empty()) return Tensor::Empty({type, std::move(shape)});
  return Tensor::Of(graph::Constant::FromArray(ir::NDArray(type, std::move(shape), values)));
}

Tensor NodeContext::Constant(Shape shape, const Shape& values) {
  if (!MayKeep(std::ssize(values))) return Tensor::Missing();
  if (values.empty()) return Tensor::Empty({ir::kInt64, std::move(shape)});
  ir::NDArray array(ir::kInt64, std::move(shape));
  for (int64_t i = 0; i < array.num_elements(); ++i)
    array.Set(i, ir::Value::Int(values[static_cast<size_t>(i)]));
  return Tensor::Of(graph::Constant::FromArray(std::move(array)));
}

void NodeContext::SetOutput(int i, Tensor tensor) {
  if (failed() || i >= num_outputs()) return;
  outputs_[static_cast<size_t>(i)] = std::move(tensor);
}

::onnx::GraphProto* NodeContext::Subgraph(std::string_view name) {
  AttributeProto* a = Find(name, AttributeProto::GRAPH);
  if (a == nullptr && !failed()) Invalid("its graph {} is missing", name);
  return a == nullptr ? nullptr : a->mutable_g();
}

std::vector<Tensor> NodeContext::Inline(::onnx::GraphProto& graph, std::vector<Tensor> inputs) {
  if (failed()) return {};
  StatusOr<std::vector<Tensor>> outputs = importer_.Inline(graph, std::move(inputs));
  if (outputs.ok()) return *std::move(outputs);
  Fail(outputs.status());
  return {};
}

}  // namespace kiln::frontend
