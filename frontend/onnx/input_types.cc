#include "frontend/onnx/input_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/closest_names.h"
#include "frontend/onnx/element_type.h"

namespace kiln::frontend {
namespace {

using ::onnx::TensorShapeProto;
using ::onnx::TypeProto;
using ::onnx::ValueInfoProto;

// Stands for an extent that the file leaves open. Some exporters write 0 for it, but a tensor may
// be empty.
constexpr int64_t kOpen = -1;

// The extents of an input in the file.
struct Declared {
  bool has_rank = false;
  std::vector<int64_t> extents = {};
  // "[batch, 3, ?, 224]".
  std::string text = "[...]";
};

Declared ReadShape(const TypeProto::Tensor& tensor) {
  Declared declared;
  if (!tensor.has_shape()) return declared;
  declared.has_rank = true;
  std::vector<std::string> texts;
  for (const TensorShapeProto::Dimension& dim : tensor.shape().dim()) {
    const bool is_fixed = dim.has_dim_value() && dim.dim_value() >= 0;
    declared.extents.push_back(is_fixed ? dim.dim_value() : kOpen);
    texts.push_back(is_fixed                  ? fmt::format("{}", dim.dim_value())
                    : dim.dim_param().empty() ? std::string("?")
                                              : dim.dim_param());
  }
  declared.text = fmt::format("[{}]", fmt::join(texts, ", "));
  return declared;
}

std::string KindOf(const TypeProto& type) {
  if (type.has_sequence_type()) return std::string("a sequence");
  if (type.has_map_type()) return std::string("a map");
  if (type.has_optional_type()) return std::string("an optional value");
  if (type.has_sparse_tensor_type()) return std::string("a sparse tensor");
  return std::string("without a type");
}

// Returns "  x: float32[batch, 3, 224, 224]" for each input, and a command line with 1 for open
// extents.
std::string Listing(const std::vector<const ValueInfoProto*>& inputs) {
  std::string text, flags;
  for (const ValueInfoProto* input : inputs) {
    if (!input->type().has_tensor_type()) continue;
    const auto& tensor = input->type().tensor_type();
    const Declared declared = ReadShape(tensor);
    text += fmt::format("\n  {}: {}{}", input->name(), ElementTypeName(tensor.elem_type()),
                        declared.text);
    std::vector<int64_t> example = declared.extents;
    if (!declared.has_rank) example = {1, 3, 224, 224};
    if (declared.has_rank && std::ranges::find(example, kOpen) == example.end()) continue;
    std::ranges::replace(example, kOpen, 1);
    flags += fmt::format(" --input {}={}", input->name(), fmt::join(example, ","));
  }
  return fmt::format("{}\nfor example:{}", text, flags);
}

Status CheckGiven(const std::string& name, const Declared& declared,
                  const std::vector<int64_t>& given) {
  bool fits = !declared.has_rank || declared.extents.size() == given.size();
  for (size_t d = 0; fits && d < declared.extents.size(); ++d)
    fits = declared.extents[d] <= 0 || declared.extents[d] == given[d];
  if (fits) return OkStatus();
  return InvalidArgument("input '{}' is {} in the model, --input says [{}]", name, declared.text,
                         fmt::join(given, ", "));
}

Status CheckNames(const std::vector<const ValueInfoProto*>& inputs, const InputShapes& shapes) {
  std::vector<std::string> names;
  for (const ValueInfoProto* input : inputs) names.push_back(input->name());
  for (const auto& [name, shape] : shapes) {
    if (std::ranges::find(names, name) != names.end()) continue;
    return InvalidArgument("the model has no input '{}'{}; it has {}", name,
                           DidYouMean(name, names), fmt::join(names, ", "));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<InputType>> ReadInputTypes(const std::vector<const ValueInfoProto*>& inputs,
                                                const InputShapes& shapes, Status& open) {
  KILN_RETURN_IF_ERROR(CheckNames(inputs, shapes));
  std::vector<InputType> types;
  for (const ValueInfoProto* input : inputs) {
    types.push_back({.name = input->name(), .shape = {}});
    if (!input->type().has_tensor_type()) {
      types.back().kind = KindOf(input->type());
      continue;
    }
    types.back().element = input->type().tensor_type().elem_type();
    const Declared declared = ReadShape(input->type().tensor_type());
    types.back().shape = declared.extents;
    const auto given = shapes.find(input->name());
    if (given != shapes.end()) {
      KILN_RETURN_IF_ERROR(CheckGiven(input->name(), declared, given->second));
      types.back().shape = given->second;
    } else {
      types.back().is_open = !declared.has_rank ||
                             std::ranges::find(declared.extents, kOpen) != declared.extents.end();
    }
  }
  if (std::ranges::any_of(types, [](const InputType& type) { return type.is_open; })) {
    open = InvalidArgument(
        "the model leaves extents of its inputs open, and Kiln needs all of them; give each such "
        "input its shape (--input name=1,3,224,224). The inputs:{}",
        Listing(inputs));
  }
  return types;
}

}  // namespace kiln::frontend
