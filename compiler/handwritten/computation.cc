#include "compiler/handwritten/computation.h"

#include <map>

#include "base/hash/digest.h"
#include "compiler/dag/text.h"

namespace kiln::handwritten {
namespace {

constexpr size_t kTagDigits = 16;

std::string TagOf(const KernelText& text) {
  std::string tag = "kernel_" + KernelDigest(text).substr(0, kTagDigits);
  if (!text.reference) return tag;
  // The reference kernel defines the outputs, so it is a part of the tag.
  KernelText reference{
      .language = text.language, .code = text.reference->code, .constants = text.constants};
  for (const auto& [name, value] : text.reference->parameters)
    reference.parameters.push_back({.name = name, .values = {value}});
  reference.code.file.clear();
  return tag + "_by_" + Sha256Hex(PrintKernelText(reference)).substr(0, kTagDigits);
}

StatusOr<std::string> ShapeText(const KernelText& text, const TensorDeclaration& tensor,
                                bool of_axes) {
  std::map<std::string, int64_t> constants;
  const auto value_of = [&](const Expression& e) {
    return formula::Evaluate(e, [&](const Expression& leaf) -> StatusOr<int64_t> {
      const auto found = constants.find(leaf.text);
      if (leaf.is_name() && found != constants.end()) return found->second;
      return InvalidArgument("{} has no value where tensors are declared", PrintExpression(leaf));
    });
  };
  // Constants that depend on extents of these tensors have no value yet and are skipped.
  for (const auto& [name, expression] : text.constants) {
    if (const StatusOr<int64_t> value = value_of(expression); value.ok()) constants[name] = *value;
  }
  std::string shape;
  for (const Expression& extent : tensor.shape) {
    const StatusOr<int64_t> value = value_of(extent);
    if (!value.ok()) {
      return InvalidArgument("tensor {}: extent {}: {}", tensor.name, PrintExpression(extent),
                             Message(value.status()));
    }
    const std::string axis =
        of_axes ? fmt::format("i{}: ", &extent - tensor.shape.data()) : std::string();
    shape += fmt::format("{}{}{}", shape.empty() ? "" : ", ", axis, *value);
  }
  return shape;
}

// Makes a body that reads the first element of every input.
std::string BodyOf(const KernelText& text, const TensorDeclaration& output) {
  std::string body;
  for (const TensorDeclaration& input : text.tensors) {
    if (input.is_output) continue;
    std::string zeros;
    for (size_t i = 0; i < input.shape.size(); ++i) zeros += i == 0 ? "0" : ", 0";
    const std::string_view between = output.type.is_bool() ? " || " : " + ";
    body += fmt::format("{}{}({}[{}])", body.empty() ? "" : between, ir::TypeName(output.type),
                        input.name, zeros);
  }
  return body;
}

StatusOr<double> FlopsOf(const KernelText& text) {
  if (!text.flops) return 0;
  std::map<std::string, int64_t> constants;
  const auto leaf = [&](const Expression& e) -> StatusOr<int64_t> {
    const auto found = constants.find(e.text);
    if (e.is_name() && found != constants.end()) return found->second;
    return InvalidArgument("flops: {} has no value here", PrintExpression(e));
  };
  for (const auto& [name, expression] : text.constants) {
    const StatusOr<int64_t> value = formula::Evaluate(expression, leaf);
    if (value.ok()) constants[name] = *value;
  }
  KILN_ASSIGN_OR_RETURN(const int64_t flops, formula::Evaluate(*text.flops, leaf));
  if (flops < 0) return InvalidArgument("flops is {}, expected 0 or more", flops);
  return static_cast<double>(flops);
}

}  // namespace

StatusOr<dag::DagPtr> TaggedComputation(const KernelText& text, const dag::DagPtr& dag) {
  const std::string tag = TagOf(text);
  std::vector<dag::OpNode> nodes = dag->nodes();
  for (int i = 0; i < dag->size(); ++i) {
    if (!dag->is_output(i)) continue;
    dag::Attrs attrs = nodes[static_cast<size_t>(i)].op->attrs();
    attrs.task_scheduler_tag = tag;
    nodes[static_cast<size_t>(i)].op = nodes[static_cast<size_t>(i)].op->WithAttrs(attrs);
  }
  return dag::Dag::Make(std::move(nodes));
}

StatusOr<dag::DagPtr> DeclaredComputation(const KernelText& text) {
  std::string dag = "@keep_order\n";
  bool has_output = false, has_input = false;
  for (const TensorDeclaration& tensor : text.tensors) {
    if (tensor.is_output) continue;
    KILN_ASSIGN_OR_RETURN(const std::string shape, ShapeText(text, tensor, false));
    dag += fmt::format("input {}: {}[{}]\n", tensor.name, ir::TypeName(tensor.type), shape);
    has_input = true;
  }
  KILN_ASSIGN_OR_RETURN(const double flops, FlopsOf(text));
  for (const TensorDeclaration& tensor : text.tensors) {
    if (!tensor.is_output) continue;
    if (!has_input)
      return InvalidArgument("[tensors] has no input, expected at least one that the kernel reads");
    KILN_ASSIGN_OR_RETURN(const std::string shape, ShapeText(text, tensor, true));
    dag += fmt::format("@flop({}) {}[{}] = {}\n", has_output ? 0 : flops, tensor.name, shape,
                       BodyOf(text, tensor));
    has_output = true;
  }
  if (!has_output) return InvalidArgument("[tensors] has no output, expected at least one");
  const StatusOr<dag::DagPtr> parsed = dag::ParseDag(dag);
  if (!parsed.ok()) return InvalidArgument("[tensors]: {}", Message(parsed.status()));
  return parsed;
}

}  // namespace kiln::handwritten
