#include "compiler/handwritten/kernel_text.h"

#include <algorithm>
#include <cmath>

#include "base/hash/digest.h"

namespace kiln::handwritten {
namespace {

// Returns a TOML string that stands on one line.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\u{:04X}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// Returns a TOML string that keeps its lines, for sources.
std::string Lines(std::string_view text) {
  std::string lines = "\"\"\"\n";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\t') {
      lines += c;
    } else if (c == '"' || c == '\\') {
      lines += '\\';
      lines += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      lines += fmt::format("\\u{:04X}", byte);
    } else {
      lines += c;
    }
  }
  return lines + "\"\"\"";
}

std::string ExpressionValue(const Expression& e) {
  return e.kind == Expression::Kind::kNumber ? fmt::format("{}", e.number)
                                             : Quoted(PrintExpression(e));
}

// A float of TOML has a point or an exponent.
std::string RealValue(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

std::string ValueText(const ParameterValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&value)) return fmt::format("{}", *number);
  return Quoted(std::get<std::string>(value));
}

template <typename T, typename Print>
std::string List(const std::vector<T>& items, const Print& print) {
  std::string text;
  for (const T& item : items) text += (text.empty() ? "" : ", ") + print(item);
  return "[" + text + "]";
}

std::string ArgumentValue(const KernelArgument& argument) {
  if (!argument.tensor.empty()) return Quoted(argument.tensor);
  if (argument.block != '\0') return fmt::format("{{ block = \"{}\" }}", argument.block);
  const auto* const real = std::get_if<double>(&argument.number);
  return fmt::format(
      "{{ {} = {} }}", ir::TypeName(argument.type),
      real != nullptr ? RealValue(*real) : ExpressionValue(std::get<Expression>(argument.number)));
}

class Printer {
 public:
  void Line(std::string_view key, const std::string& value) {
    text_ += fmt::format("{} = {}\n", key, value);
  }
  void String(std::string_view key, const std::string& value) {
    if (!value.empty()) Line(key, Quoted(value));
  }
  void Table(std::string_view name) { text_ += fmt::format("\n[{}]\n", name); }

  // `all` also prints empty lists, for a reference, which would otherwise inherit the lists of the
  // kernel.
  void Add(const Code& code, bool all = false) {
    String("file", code.file);
    String("kernel", code.function);
    if (all || !code.arguments.empty()) Line("arguments", List(code.arguments, ArgumentValue));
    if (!code.grid.empty()) Line("grid", List(code.grid, ExpressionValue));
    if (!code.block.empty()) Line("block", List(code.block, ExpressionValue));
    if (code.shared_bytes) Line("shared_bytes", ExpressionValue(*code.shared_bytes));
    if (all || !code.options.empty()) Line("options", List(code.options, Quoted));
    if (!code.source.empty()) Line("source", Lines(code.source));
  }

  void Add(const KernelText& text) {
    Line("language", Quoted(LanguageName(text.language)));
    String("operator", text.computation.op);
    String("args", text.computation.args);
    String("dtype", text.computation.dtype);
    String("out_dtype", text.computation.out_dtype);
    String("epilogue", text.computation.epilogue);
    String("computation", text.computation.file);
    if (text.flops) Line("flops", ExpressionValue(*text.flops));
    if (!text.restrictions.empty()) Line("restrictions", List(text.restrictions, ExpressionValue));
    Add(text.code);
    if (!text.constants.empty()) Table("constants");
    for (const auto& [name, value] : text.constants) Line(name, ExpressionValue(value));
    Table("parameters");
    for (const Parameter& parameter : text.parameters)
      Line(parameter.name, List(parameter.values, ValueText));
    if (!text.tensors.empty()) Table("tensors");
    for (const TensorDeclaration& tensor : text.tensors) Add(tensor);
    if (text.reference) Add(*text.reference);
  }

  std::string Take() && { return std::move(text_); }

 private:
  void Add(const TensorDeclaration& tensor) {
    std::string shape;
    for (const Expression& extent : tensor.shape)
      shape += (shape.empty() ? "" : ", ") + PrintExpression(extent);
    Line(tensor.name, Quoted(fmt::format("{} {}[{}]", tensor.is_output ? "output" : "input",
                                         ir::TypeName(tensor.type), shape)));
  }

  void Add(const Reference& reference) {
    Table("reference");
    Add(reference.code, true);
    if (!reference.parameters.empty()) Table("reference.parameters");
    for (const auto& [name, value] : reference.parameters) Line(name, ValueText(value));
  }

  std::string text_;
};

}  // namespace

std::string_view LanguageName(Language language) { return language == Language::kC ? "c" : "cuda"; }

bool IsKernelFile(std::string_view path) { return path.ends_with(".c") || path.ends_with(".cu"); }

StatusOr<Language> LanguageOfFile(std::string_view path) {
  if (path.ends_with(".cu")) return Language::kCuda;
  if (path.ends_with(".c")) return Language::kC;
  return InvalidArgument("'{}' is no kernel's source, expected a file *.cu or *.c", path);
}

std::string MacroText(const ParameterValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  if (const auto* number = std::get_if<int64_t>(&value)) return fmt::format("{}", *number);
  return std::get<std::string>(value);
}

bool HasReferenceKernel(std::string_view toml) {
  if (toml.empty()) return false;
  const StatusOr<KernelText> text = ParseKernelText(toml);
  return text.ok() && text->reference.has_value();
}

std::string PrintKernelText(const KernelText& text) {
  Printer printer;
  printer.Add(text);
  return std::move(printer).Take();
}

std::string KernelDigest(const KernelText& text) {
  KernelText identity{.language = text.language, .code = text.code, .constants = text.constants};
  // The name of the file does not matter.
  identity.code.file.clear();
  return Sha256Hex(PrintKernelText(identity));
}

}  // namespace kiln::handwritten
