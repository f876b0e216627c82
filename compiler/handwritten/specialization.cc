#include "compiler/handwritten/specialization.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/dag/text.h"
#include "compiler/ir/scalar.h"

namespace kiln::handwritten {
namespace {

// Limits of all CUDA devices (CUDA C++ Programming Guide, Compute Capabilities).
constexpr std::array<int64_t, 3> kMaxBlocks = {0x7fffffff, 65535, 65535};
constexpr std::array<int64_t, 3> kMaxThreads = {1024, 1024, 64};
constexpr int64_t kMaxSharedBytes = int64_t{1} << 30;

// Finds the computation's argument that a name means.
class Tensors {
 public:
  explicit Tensors(const dag::Dag& dag) : dag_(dag) {
    const std::vector<std::string> names = dag::DisplayNames(dag);
    int inputs = 0, outputs = 0;
    for (const dag::Tensor argument : dag.arguments()) {
      names_.push_back(dag::TensorName(dag, names, argument));
      aliases_.push_back(dag.op(argument.op).is_placeholder() ? fmt::format("input{}", inputs++)
                                                              : fmt::format("output{}", outputs++));
    }
  }

  int size() const { return static_cast<int>(names_.size()); }

  StatusOr<int> Find(const std::string& name) const {
    for (const std::vector<std::string>* list : {&names_, &aliases_}) {
      const auto found = std::ranges::find(*list, name);
      if (found != list->end()) return static_cast<int>(found - list->begin());
    }
    std::string known;
    for (size_t i = 0; i < names_.size(); ++i)
      known += fmt::format("{}{} ({})", i == 0 ? "" : ", ", names_[i], aliases_[i]);
    return InvalidArgument("the computation has no input or output {}, it has {}", name, known);
  }

  // Returns extent(TENSOR, 0).
  StatusOr<int64_t> Extent(const Expression& call) const {
    KILN_ASSIGN_OR_RETURN(const int tensor, Find(call.args[0].text));
    const std::vector<int64_t>& shape = dag_.shape(dag_.arguments()[static_cast<size_t>(tensor)]);
    const int64_t axis = call.args[1].number;
    if (axis >= 0 && axis < std::ssize(shape)) return shape[static_cast<size_t>(axis)];
    return InvalidArgument("{} has {} dimensions, found {}", call.args[0].text, shape.size(),
                           PrintExpression(call));
  }

 private:
  const dag::Dag& dag_;
  std::vector<std::string> names_;
  // Names by number, such as "input0" and "output0", for computations whose names the user does not
  // know.
  std::vector<std::string> aliases_;
};

// The values of names in expressions: constants and parameters.
class Numbers {
 public:
  // Both arguments must outlive this object.
  Numbers(const Tensors& tensors, std::span<const NamedValue> values)
      : tensors_(tensors), values_(values) {}

  Status AddConstants(const KernelText& text) {
    for (const auto& [name, expression] : text.constants) {
      StatusOr<int64_t> value = Of(expression);
      if (!value.ok()) return Annotate(value.status(), fmt::format("constant {}", name));
      constants_[name] = *value;
    }
    return OkStatus();
  }

  int64_t Constant(const std::string& name) const { return constants_.at(name); }

  StatusOr<int64_t> Of(const Expression& expression) const { return Of(expression, values_); }
  StatusOr<int64_t> Of(const Expression& expression, std::span<const NamedValue> values) const {
    return formula::Evaluate(expression, [&](const Expression& leaf) -> StatusOr<int64_t> {
      if (leaf.kind == Expression::Kind::kCall) return tensors_.Extent(leaf);
      if (leaf.text == "true" || leaf.text == "false") return leaf.text == "true" ? 1 : 0;
      const auto given = std::ranges::find(values, leaf.text, &NamedValue::first);
      if (given != values.end()) return NumberOf(*given);
      const auto constant = constants_.find(leaf.text);
      if (constant != constants_.end()) return constant->second;
      return InvalidArgument("{} has no value that is a number", leaf.text);
    });
  }

 private:
  static StatusOr<int64_t> NumberOf(const NamedValue& named) {
    if (const auto* flag = std::get_if<bool>(&named.second)) return *flag ? 1 : 0;
    if (const auto* number = std::get_if<int64_t>(&named.second)) return *number;
    return InvalidArgument("{} is a word, expected a number", named.first);
  }

  const Tensors& tensors_;
  const std::span<const NamedValue> values_;
  std::map<std::string, int64_t, std::less<>> constants_;
};

Status CheckValues(const KernelText& text, std::span<const NamedValue> values) {
  if (values.size() != text.parameters.size()) {
    return InvalidArgument("{} values for {} parameters of the kernel {}", values.size(),
                           text.parameters.size(), text.code.function);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Parameter& parameter = text.parameters[i];
    if (values[i].first != parameter.name) {
      return InvalidArgument("parameter {} of the kernel {} is {}, found a value of {}", i,
                             text.code.function, parameter.name, values[i].first);
    }
    if (values[i].second.index() != parameter.values[0].index()) {
      return InvalidArgument("parameter {} is {}, expected a value as {}", parameter.name,
                             MacroText(values[i].second), MacroText(parameter.values[0]));
    }
  }
  return OkStatus();
}

// Removes the position from a message. The position is one within a formula of one line, which
// tells the reader nothing.
Status WithoutPosition(const Status& status) {
  const std::string_view message = Message(status);
  if (!message.starts_with("line ")) return status;
  const size_t end = message.find(": ");
  return end == message.npos ? status : Status(status.code(), std::string(message.substr(end + 2)));
}

Status ReadExtents(const std::vector<Expression>& from, std::string_view what,
                   const Numbers& numbers, std::array<int64_t, 3>& into) {
  for (size_t i = 0; i < from.size(); ++i) {
    const StatusOr<int64_t> extent = numbers.Of(from[i]);
    if (!extent.ok()) return Annotate(WithoutPosition(extent.status()), what);
    if (*extent < 1) {
      return InvalidArgument("{} extent {} is {}, expected at least 1: {}", what, "xyz"[i], *extent,
                             PrintExpression(from[i]));
    }
    into[i] = *extent;
  }
  return OkStatus();
}

StatusOr<BoundArgument> Bind(const KernelArgument& argument, const Tensors& tensors,
                             const Numbers& numbers) {
  BoundArgument bound{.block = argument.block, .type = argument.type};
  if (!argument.tensor.empty()) {
    KILN_ASSIGN_OR_RETURN(bound.tensor, tensors.Find(argument.tensor));
    return bound;
  }
  if (argument.block != '\0') return bound;
  if (const auto* const real = std::get_if<double>(&argument.number)) {
    bound.number = *real;
    return bound;
  }
  const Expression& expression = std::get<Expression>(argument.number);
  const StatusOr<int64_t> number = numbers.Of(expression);
  if (!number.ok()) return Annotate(WithoutPosition(number.status()), "arguments");
  const int bits = argument.type.bits;
  const bool is_narrow = !argument.type.is_float() && bits < 64;
  const bool is_unsigned = argument.type.is_unsigned() || argument.type.is_bool();
  const bool fits = (!is_unsigned || *number >= 0) &&
                    (!is_narrow || ir::WrapToType(*number, argument.type) == *number);
  if (!fits) {
    return InvalidArgument("arguments: {} = {} is beyond {}", PrintExpression(expression), *number,
                           ir::TypeName(argument.type));
  }
  if (argument.type.is_float()) {
    bound.number = static_cast<double>(*number);
  } else {
    bound.number = *number;
  }
  return bound;
}

StatusOr<std::vector<BoundArgument>> BindAll(const Code& code, const dag::Dag& dag,
                                             const Tensors& tensors, const Numbers& numbers) {
  std::vector<BoundArgument> bound;
  if (code.arguments.empty()) {
    for (int i = 0; i < tensors.size(); ++i) bound.push_back({.tensor = i});
    return bound;
  }
  std::set<int> given;
  for (const KernelArgument& argument : code.arguments) {
    KILN_ASSIGN_OR_RETURN(bound.emplace_back(), Bind(argument, tensors, numbers));
    given.insert(bound.back().tensor);
  }
  for (int i = 0; i < tensors.size(); ++i) {
    const dag::Tensor tensor = dag.arguments()[static_cast<size_t>(i)];
    if (dag.op(tensor.op).is_placeholder() || given.contains(i)) continue;
    return InvalidArgument("the kernel {} is not given the output {}", code.function,
                           dag::TensorName(dag, dag::DisplayNames(dag), tensor));
  }
  return bound;
}

void Define(std::string_view name, std::string_view value, std::string& source) {
  source += fmt::format("#define {} {}\n", name, value);
}

// Returns the file's name without characters that a C string cannot hold.
std::string FileName(const Code& code) {
  std::string name = code.file.empty() ? "kernel" : code.file;
  std::erase_if(name, [](unsigned char c) { return c < 0x20 || c == '"' || c == '\\'; });
  return name;
}

StatusOr<Specialization> SpecializeCode(const KernelText& text, const Code& code,
                                        const dag::Dag& dag, std::span<const NamedValue> values) {
  const Tensors tensors(dag);
  Numbers numbers(tensors, values);
  KILN_RETURN_IF_ERROR(numbers.AddConstants(text));
  Specialization made{.language = text.language,
                      .source = {},
                      .function = code.function,
                      .arguments = {},
                      .options = code.options};
  for (const auto& [name, expression] : text.constants)
    Define(name, fmt::format("{}", numbers.Constant(name)), made.source);
  for (const auto& [name, value] : values) Define(name, MacroText(value), made.source);
  made.source += fmt::format("#line 1 \"{}\"\n", FileName(code));
  made.source += code.source;
  if (!made.source.ends_with('\n')) made.source += '\n';
  KILN_RETURN_IF_ERROR(ReadExtents(code.grid, "grid", numbers, made.grid));
  KILN_RETURN_IF_ERROR(ReadExtents(code.block, "block", numbers, made.block));
  if (code.shared_bytes) {
    const StatusOr<int64_t> bytes = numbers.Of(*code.shared_bytes);
    if (!bytes.ok()) return Annotate(WithoutPosition(bytes.status()), "shared_bytes");
    if (*bytes < 0 || *bytes > kMaxSharedBytes)
      return InvalidArgument("shared_bytes is {}, expected 0 to 2^30", *bytes);
    made.shared_bytes = *bytes;
  }
  KILN_ASSIGN_OR_RETURN(made.arguments, BindAll(code, dag, tensors, numbers));
  return made;
}

}  // namespace

StatusOr<Specialization> Specialize(const KernelText& text, const dag::Dag& dag,
                                    std::span<const NamedValue> values) {
  KILN_RETURN_IF_ERROR(CheckValues(text, values));
  return SpecializeCode(text, text.code, dag, values);
}

StatusOr<Specialization> SpecializeReference(const KernelText& text, const dag::Dag& dag) {
  KILN_CHECK(text.reference.has_value(), "{} has no reference kernel", text.code.function);
  const StatusOr<Specialization> made =
      SpecializeCode(text, text.reference->code, dag, text.reference->parameters);
  if (!made.ok()) return Annotate(made.status(), "the reference");
  return made;
}

struct Restrictions::Facts {
  Facts(KernelText t, dag::DagPtr d)
      : text(std::move(t)), dag(std::move(d)), tensors(*dag), numbers(tensors, {}) {}
  const KernelText text;
  const dag::DagPtr dag;
  const Tensors tensors;
  Numbers numbers;
};

StatusOr<Restrictions> Restrictions::Make(KernelText text, dag::DagPtr dag) {
  auto facts = std::make_shared<Facts>(std::move(text), std::move(dag));
  KILN_RETURN_IF_ERROR(facts->numbers.AddConstants(facts->text));
  return Restrictions(std::move(facts));
}

bool Restrictions::Hold(std::span<const NamedValue> values) const {
  return std::ranges::all_of(facts_->text.restrictions, [&](const Expression& restriction) {
    const StatusOr<int64_t> holds = facts_->numbers.Of(restriction, values);
    return holds.ok() && *holds != 0;
  });
}

Status CheckLaunch(const Specialization& kernel, const target::HardwareParams& hardware) {
  if (kernel.language != Language::kCuda) return OkStatus();
  for (size_t i = 0; i < 3; ++i) {
    if (kernel.grid[i] > kMaxBlocks[i]) {
      return FailedPrecondition("{} blocks along {}, a GPU takes at most {}", kernel.grid[i],
                                "xyz"[i], kMaxBlocks[i]);
    }
    if (kernel.block[i] > kMaxThreads[i]) {
      return FailedPrecondition("{} threads along {}, a GPU takes at most {}", kernel.block[i],
                                "xyz"[i], kMaxThreads[i]);
    }
  }
  const int64_t most = hardware.max_threads_per_block;
  if (most > 0 && kernel.threads() > most) {
    return FailedPrecondition("{} threads per block ({}), this GPU allows {}", kernel.threads(),
                              fmt::join(kernel.block, " x "), most);
  }
  const int64_t shared = hardware.max_shared_memory_per_block_bytes;
  if (shared > 0 && kernel.shared_bytes > shared) {
    return FailedPrecondition("{} bytes of shared memory per block, this GPU has {}",
                              kernel.shared_bytes, shared);
  }
  return OkStatus();
}

Status CheckBinding(const KernelText& text, const dag::Dag& dag) {
  // Numbers among the arguments may depend on parameters. Any of their values will do here.
  std::vector<NamedValue> values;
  for (const Parameter& parameter : text.parameters)
    values.emplace_back(parameter.name, parameter.values[0]);
  const Tensors tensors(dag);
  Numbers numbers(tensors, values);
  KILN_RETURN_IF_ERROR(numbers.AddConstants(text));
  KILN_RETURN_IF_ERROR(BindAll(text.code, dag, tensors, numbers).status());
  if (text.reference) KILN_RETURN_IF_ERROR(SpecializeReference(text, dag).status());
  return OkStatus();
}

}  // namespace kiln::handwritten
