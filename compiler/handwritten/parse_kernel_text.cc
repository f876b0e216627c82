#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "base/text/closest_names.h"
#include "base/text/toml_text.h"
#include "base/text/utf8.h"
#include "compiler/handwritten/compiler_options.h"
#include "compiler/handwritten/kernel_text.h"

namespace kiln::handwritten {
namespace {

using formula::TextPosition;

constexpr size_t kMaxWordBytes = 256;
// Limit of the items of a list.
constexpr size_t kMaxItems = 4096;

template <typename... Args>
Status ErrorAt(const toml::source_region& where, fmt::format_string<Args...> format,
               Args&&... args) {
  const TextPosition at{static_cast<int>(where.begin.line), static_cast<int>(where.begin.column)};
  return formula::AtPosition(at, InvalidArgument(format, std::forward<Args>(args)...));
}

std::string_view KindOf(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

bool IsIdentifier(std::string_view name) {
  if (name.empty() || name.size() > kMaxWordBytes) return false;
  if (name[0] >= '0' && name[0] <= '9') return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// True for words that have a meaning in expressions.
bool IsTaken(std::string_view name) {
  static constexpr std::string_view kWords[] = {"and", "or",  "not",      "true",  "false",
                                                "min", "max", "ceil_div", "extent"};
  return std::ranges::find(kWords, name) != std::end(kWords);
}

Status CheckKeys(const toml::table& table, std::span<const std::string_view> known,
                 std::string_view where) {
  for (const auto& [key, node] : InOrder(table)) {
    if (std::ranges::find(known, key->str()) != known.end()) continue;
    std::vector<std::string> words(known.begin(), known.end());
    return ErrorAt(key->source(), "unknown key '{}'{}, expected one of {}{}", key->str(), where,
                   fmt::join(words, ", "), DidYouMean(std::string(key->str()), words));
  }
  return OkStatus();
}

StatusOr<std::string> StringOf(const toml::node& node, std::string_view what) {
  if (const auto* const text = node.as_string()) return text->get();
  return ErrorAt(node.source(), "{}: expected a string, found {}", what, KindOf(node));
}

// Reads the string of a table's key. `into` stays as it is if the table lacks the key.
Status ReadString(const toml::table& table, std::string_view key, std::string& into) {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return OkStatus();
  KILN_ASSIGN_OR_RETURN(into, StringOf(*node, key));
  return OkStatus();
}

StatusOr<const toml::array*> ListOf(const toml::node& node, std::string_view what) {
  const toml::array* const list = node.as_array();
  if (list == nullptr)
    return ErrorAt(node.source(), "{}: expected a list, found {}", what, KindOf(node));
  if (list->size() <= kMaxItems) return list;
  return ErrorAt(node.source(), "{}: {} items, expected at most {}", what, list->size(), kMaxItems);
}

StatusOr<const toml::table*> TableOf(const toml::node& node, std::string_view what) {
  if (const toml::table* const table = node.as_table()) return table;
  return ErrorAt(node.source(), "{}: expected a table, found {}", what, KindOf(node));
}

StatusOr<Expression> ExpressionOf(const toml::node& node, std::string_view what) {
  if (const auto* const number = node.as_integer()) {
    return Expression{.kind = Expression::Kind::kNumber, .number = number->get()};
  }
  const auto* const text = node.as_string();
  if (text == nullptr) {
    return ErrorAt(node.source(), "{}: expected a whole number or an expression, found {}", what,
                   KindOf(node));
  }
  StatusOr<Expression> parsed = formula::ParseExpression(text->get());
  if (parsed.ok()) return parsed;
  // The position in the message is one within the string, so its line is left out.
  std::string message(Message(parsed.status()));
  if (message.starts_with("line 1, ")) message.erase(0, 8);
  return ErrorAt(node.source(), "{} '{}': {}", what, text->get(), message);
}

StatusOr<std::vector<Expression>> ExpressionsOf(const toml::node& node, std::string_view what) {
  KILN_ASSIGN_OR_RETURN(const toml::array* const list, ListOf(node, what));
  std::vector<Expression> expressions;
  for (const toml::node& item : *list) {
    KILN_ASSIGN_OR_RETURN(Expression expression, ExpressionOf(item, what));
    expressions.push_back(std::move(expression));
  }
  return expressions;
}

StatusOr<std::vector<Expression>> ExtentsOf(const toml::node& node, std::string_view what) {
  KILN_ASSIGN_OR_RETURN(std::vector<Expression> extents, ExpressionsOf(node, what));
  if (!extents.empty() && extents.size() <= 3) return extents;
  return ErrorAt(node.source(), "{}: {} extents, expected one to three: x, y, z", what,
                 extents.size());
}

StatusOr<ParameterValue> ValueOf(const toml::node& node, std::string_view what) {
  if (const auto* const flag = node.as_boolean()) return flag->get();
  if (const auto* const number = node.as_integer()) return number->get();
  const auto* const word = node.as_string();
  if (word == nullptr) {
    return ErrorAt(node.source(),
                   "{}: expected whole numbers, true and false, or strings, found {}", what,
                   KindOf(node));
  }
  const std::string& text = word->get();
  const bool printable =
      std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20 && c < 0x7f && c != '\\'; });
  if (!printable || text.empty() || text.size() > kMaxWordBytes) {
    return ErrorAt(node.source(),
                   "{}: expected a word of 1 to {} printable characters, which becomes a macro",
                   what, kMaxWordBytes);
  }
  return text;
}

StatusOr<KernelArgument> NumberArgument(const toml::key& type, const toml::node& node) {
  KernelArgument argument;
  const StatusOr<ir::Type> parsed = ir::ParseType(type.str());
  const bool known = parsed.ok() && !parsed->is_short_float();
  if (!known) {
    return ErrorAt(type.source(),
                   "arguments: '{}' is no type of a number, expected int8, int32, int64, bool, "
                   "float32 or float64, or block",
                   type.str());
  }
  argument.type = *parsed;
  if (const auto* const real = node.as_floating_point()) {
    if (!argument.type.is_float() || !std::isfinite(real->get())) {
      return ErrorAt(node.source(), "arguments: {} of type {}, expected a finite number of it",
                     real->get(), type.str());
    }
    argument.number = real->get();
    return argument;
  }
  KILN_ASSIGN_OR_RETURN(argument.number, ExpressionOf(node, "arguments"));
  return argument;
}

StatusOr<KernelArgument> ArgumentOf(const toml::node& node) {
  KernelArgument argument;
  if (const auto* const name = node.as_string()) {
    argument.tensor = name->get();
    if (!argument.tensor.empty()) return argument;
    return ErrorAt(node.source(), "arguments: expected the name of an input or output");
  }
  const toml::table* const table = node.as_table();
  if (table == nullptr || table->size() != 1) {
    return ErrorAt(node.source(),
                   "arguments: expected the name of an input or output, a number as {{ int32 = "
                   "1024 }}, or {{ block = \"x\" }}");
  }
  const auto entry = InOrder(*table)[0];
  if (entry.first->str() != "block") return NumberArgument(*entry.first, *entry.second);
  KILN_ASSIGN_OR_RETURN(const std::string dimension, StringOf(*entry.second, "block"));
  if (dimension != "x" && dimension != "y" && dimension != "z")
    return ErrorAt(entry.second->source(), "block: '{}', expected x, y or z", dimension);
  argument.block = dimension[0];
  return argument;
}

constexpr std::string_view kKeys[] = {
    "kernel",    "operator",   "args",    "dtype",     "out_dtype",    "epilogue", "computation",
    "flops",     "arguments",  "grid",    "block",     "shared_bytes", "options",  "restrictions",
    "constants", "parameters", "tensors", "reference", "language",     "file",     "source"};
constexpr std::string_view kReferenceKeys[] = {"file",         "source",  "kernel",
                                               "arguments",    "grid",    "block",
                                               "shared_bytes", "options", "parameters"};

class KernelTextParser {
 public:
  explicit KernelTextParser(const toml::table& root) : root_(root) {}

  StatusOr<KernelText> Parse(KernelText text) {
    text_ = std::move(text);
    KILN_RETURN_IF_ERROR(CheckKeys(root_, kKeys, ""));
    KILN_RETURN_IF_ERROR(ReadComputation());
    KILN_RETURN_IF_ERROR(ReadConstants());
    KILN_RETURN_IF_ERROR(ReadParameters());
    KILN_RETURN_IF_ERROR(ReadCode(root_, text_.code));
    UseNamedBlockSizes();
    KILN_RETURN_IF_ERROR(CheckCode(root_, text_.code));
    KILN_RETURN_IF_ERROR(ReadRestrictions());
    KILN_RETURN_IF_ERROR(ReadTensors());
    KILN_RETURN_IF_ERROR(ReadReference());
    KILN_RETURN_IF_ERROR(CheckWhatItComputes());
    return std::move(text_);
  }

 private:
  Status ReadComputation() {
    ComputationSource& from = text_.computation;
    KILN_RETURN_IF_ERROR(ReadString(root_, "operator", from.op));
    KILN_RETURN_IF_ERROR(ReadString(root_, "args", from.args));
    KILN_RETURN_IF_ERROR(ReadString(root_, "dtype", from.dtype));
    KILN_RETURN_IF_ERROR(ReadString(root_, "out_dtype", from.out_dtype));
    KILN_RETURN_IF_ERROR(ReadString(root_, "epilogue", from.epilogue));
    KILN_RETURN_IF_ERROR(ReadString(root_, "computation", from.file));
    return OkStatus();
  }

  Status AddName(const toml::key& key) {
    const std::string name(key.str());
    if (!IsIdentifier(name) || IsTaken(name)) {
      return ErrorAt(key.source(), "'{}' cannot be the name of a macro and of expressions", name);
    }
    if (!names_.insert(name).second)
      return ErrorAt(key.source(), "'{}' is there twice, as a constant or parameter", name);
    return OkStatus();
  }

  Status ReadConstants() {
    const toml::node* const node = root_.get("constants");
    if (node == nullptr) return OkStatus();
    KILN_ASSIGN_OR_RETURN(const toml::table* const table, TableOf(*node, "constants"));
    for (const auto& [key, value] : InOrder(*table)) {
      const std::string what = fmt::format("constant {}", key->str());
      KILN_ASSIGN_OR_RETURN(Expression expression, ExpressionOf(*value, what));
      KILN_RETURN_IF_ERROR(CheckNames(expression, value->source(), what));
      KILN_RETURN_IF_ERROR(AddName(*key));
      numbers_.insert(std::string(key->str()));
      text_.constants.emplace_back(key->str(), std::move(expression));
    }
    constants_ = numbers_;
    return OkStatus();
  }

  Status ReadParameters() {
    const toml::node* const node = root_.get("parameters");
    if (node == nullptr) {
      return ErrorAt(root_.source(),
                     "there is no table [parameters], expected at least one line as block_size_x = "
                     "[16, 32]");
    }
    KILN_ASSIGN_OR_RETURN(const toml::table* const table, TableOf(*node, "parameters"));
    for (const auto& [key, value] : InOrder(*table)) {
      Parameter parameter{.name = std::string(key->str()), .values = {}};
      KILN_RETURN_IF_ERROR(AddName(*key));
      const std::string what = fmt::format("parameter {}", key->str());
      KILN_ASSIGN_OR_RETURN(const toml::array* const list, ListOf(*value, what));
      if (list->empty()) return ErrorAt(value->source(), "{} has no value", what);
      std::set<ParameterValue> seen;
      for (const toml::node& item : *list) {
        KILN_ASSIGN_OR_RETURN(ParameterValue one, ValueOf(item, what));
        if (!parameter.values.empty() && one.index() != parameter.values[0].index())
          return ErrorAt(item.source(), "{} has values of several kinds, expected one", what);
        if (!seen.insert(one).second)
          return ErrorAt(item.source(), "{} has the value {} twice", what, MacroText(one));
        parameter.values.push_back(std::move(one));
      }
      if (!std::holds_alternative<std::string>(parameter.values[0]))
        numbers_.insert(parameter.name);
      text_.parameters.push_back(std::move(parameter));
    }
    if (text_.parameters.empty())
      return ErrorAt(table->source(), "[parameters] has no line as block_size_x = [16, 32]");
    return OkStatus();
  }

  // Reads the keys that the table has. Other fields of `code` stay.
  Status ReadCode(const toml::table& table, Code& code) {
    KILN_RETURN_IF_ERROR(ReadString(table, "file", code.file));
    KILN_RETURN_IF_ERROR(ReadString(table, "source", code.source));
    KILN_RETURN_IF_ERROR(ReadString(table, "kernel", code.function));
    if (const toml::node* const node = table.get("arguments")) {
      KILN_ASSIGN_OR_RETURN(const toml::array* const list, ListOf(*node, "arguments"));
      code.arguments.clear();
      for (const toml::node& item : *list) {
        KILN_ASSIGN_OR_RETURN(KernelArgument argument, ArgumentOf(item));
        code.arguments.push_back(std::move(argument));
      }
    }
    if (const toml::node* const node = table.get("grid")) {
      KILN_ASSIGN_OR_RETURN(code.grid, ExtentsOf(*node, "grid"));
    }
    if (const toml::node* const node = table.get("block")) {
      KILN_ASSIGN_OR_RETURN(code.block, ExtentsOf(*node, "block"));
    }
    if (const toml::node* const node = table.get("shared_bytes")) {
      KILN_ASSIGN_OR_RETURN(code.shared_bytes, ExpressionOf(*node, "shared_bytes"));
    }
    return ReadOptions(table, code);
  }

  Status ReadOptions(const toml::table& table, Code& code) {
    const toml::node* const node = table.get("options");
    if (node == nullptr) return OkStatus();
    KILN_ASSIGN_OR_RETURN(const toml::array* const list, ListOf(*node, "options"));
    code.options.clear();
    for (const toml::node& item : *list) {
      KILN_ASSIGN_OR_RETURN(std::string option, StringOf(item, "options"));
      const Status allowed = CheckCompilerOption(text_.language, option);
      if (!allowed.ok()) return ErrorAt(item.source(), "options: {}", Message(allowed));
      code.options.push_back(std::move(option));
    }
    return OkStatus();
  }

  // Parameters of these names are the threads of a block, as in Kernel Tuner.
  void UseNamedBlockSizes() {
    if (text_.language != Language::kCuda || !text_.code.block.empty()) return;
    for (const char* const name : {"block_size_x", "block_size_y", "block_size_z"}) {
      if (!numbers_.contains(name)) return;
      text_.code.block.push_back({.kind = Expression::Kind::kName, .text = name});
    }
  }

  Status CheckCode(const toml::table& table, const Code& code) {
    const auto place = [&](std::string_view key) {
      const toml::node* const node = table.get(key);
      return node != nullptr ? node->source() : table.source();
    };
    if (code.function.empty())
      return ErrorAt(place("kernel"), "there is no kernel = \"...\", the name of the function");
    const bool cuda = text_.language == Language::kCuda;
    if (cuda && code.grid.empty())
      return ErrorAt(place("grid"), "there is no grid = [...], as [\"ceil_div(N, block_size_x)\"]");
    if (cuda && code.block.empty()) {
      return ErrorAt(place("block"),
                     "there is no block = [...], and no parameter block_size_x that would be it");
    }
    if (!cuda && !code.block.empty())
      return ErrorAt(place("block"), "a block of threads is of CUDA; this is C");
    if (!cuda && code.shared_bytes)
      return ErrorAt(place("shared_bytes"), "shared memory is of CUDA; this is C");
    for (const Expression& e : code.grid)
      KILN_RETURN_IF_ERROR(CheckNames(e, place("grid"), "grid"));
    for (const Expression& e : code.block)
      KILN_RETURN_IF_ERROR(CheckNames(e, place("block"), "block"));
    if (code.shared_bytes) {
      KILN_RETURN_IF_ERROR(CheckNames(*code.shared_bytes, place("shared_bytes"), "shared_bytes"));
    }
    for (const KernelArgument& argument : code.arguments) {
      if (argument.block != '\0' &&
          (cuda || code.grid.size() <= static_cast<size_t>(argument.block - 'x'))) {
        return ErrorAt(place("arguments"),
                       "arguments: block {} is of C, of a grid that has such an extent",
                       argument.block);
      }
      const auto* const number = std::get_if<Expression>(&argument.number);
      if (!argument.tensor.empty() || argument.block != '\0' || number == nullptr) continue;
      KILN_RETURN_IF_ERROR(CheckNames(*number, place("arguments"), "arguments"));
    }
    return OkStatus();
  }

  // Expressions may name constants, and parameters that are numbers.
  Status CheckNames(const Expression& e, const toml::source_region& at, std::string_view what) {
    using Kind = Expression::Kind;
    if (e.kind == Kind::kList || e.kind == Kind::kIndex)
      return ErrorAt(at, "{}: expected a number, found '{}'", what, PrintExpression(e));
    if (e.kind == Kind::kName && e.text != "true" && e.text != "false" &&
        !numbers_.contains(e.text)) {
      const std::vector<std::string> known(numbers_.begin(), numbers_.end());
      return ErrorAt(at, "{}: '{}' is no constant and no parameter that is a number{}", what,
                     e.text, DidYouMean(e.text, known));
    }
    if (e.kind == Kind::kCall) return CheckCall(e, at, what);
    for (const Expression& arg : e.args) KILN_RETURN_IF_ERROR(CheckNames(arg, at, what));
    return OkStatus();
  }

  Status CheckCall(const Expression& e, const toml::source_region& at, std::string_view what) {
    if (e.text == "extent") {
      const bool right =
          e.args.size() == 2 && e.args[0].is_name() && e.args[1].kind == Expression::Kind::kNumber;
      if (right) return OkStatus();
      return ErrorAt(at, "{}: expected extent(TENSOR, 0), found '{}'", what, PrintExpression(e));
    }
    const bool many = e.text == "min" || e.text == "max";
    if (!formula::IsNumericFunction(e.text) || e.args.size() < 2 || (!many && e.args.size() > 2)) {
      return ErrorAt(
          at,
          "{}: expected min(a, b, ...), max(a, b, ...), ceil_div(a, b) or extent(TENSOR, "
          "0), found '{}'",
          what, PrintExpression(e));
    }
    for (const Expression& arg : e.args) KILN_RETURN_IF_ERROR(CheckNames(arg, at, what));
    return OkStatus();
  }

  Status ReadRestrictions() {
    const toml::node* const node = root_.get("restrictions");
    if (node == nullptr) return OkStatus();
    KILN_ASSIGN_OR_RETURN(text_.restrictions, ExpressionsOf(*node, "restrictions"));
    for (size_t i = 0; i < text_.restrictions.size(); ++i) {
      KILN_RETURN_IF_ERROR(
          CheckNames(text_.restrictions[i], (*node->as_array())[i].source(), "restrictions"));
    }
    return OkStatus();
  }

  // Parses "input float32[N, 1024]".
  StatusOr<TensorDeclaration> Tensor(const toml::key& key, const toml::node& node) {
    TensorDeclaration tensor{.name = std::string(key.str())};
    KILN_ASSIGN_OR_RETURN(const std::string text, StringOf(node, "tensors"));
    const Status wrong = ErrorAt(node.source(),
                                 "tensors: {} is '{}', expected \"input float32[N, 1024]\" or "
                                 "\"output ...\"",
                                 tensor.name, text);
    if (!IsIdentifier(tensor.name)) return wrong;
    const size_t blank = text.find(' '), open = text.find('['), close = text.rfind(']');
    if (blank == text.npos || open == text.npos || blank > open || close + 1 != text.size())
      return wrong;
    const std::string_view role = std::string_view(text).substr(0, blank);
    if (role != "input" && role != "output") return wrong;
    tensor.is_output = role == "output";
    const StatusOr<ir::Type> type =
        ir::ParseType(std::string_view(text).substr(blank + 1, open - blank - 1));
    if (!type.ok()) return ErrorAt(node.source(), "tensors: {}", Message(type.status()));
    tensor.type = *type;
    const StatusOr<Expression> shape = formula::ParseExpression(text.substr(open));
    if (!shape.ok() || shape->kind != Expression::Kind::kList || shape->args.size() > 32)
      return wrong;
    const std::set<std::string> all = std::exchange(numbers_, constants_);
    for (const Expression& extent : shape->args) {
      const Status named = CheckNames(extent, node.source(), "tensors");
      if (!named.ok()) {
        numbers_ = all;
        return named;
      }
    }
    numbers_ = all;
    tensor.shape = shape->args;
    return tensor;
  }

  Status ReadTensors() {
    const toml::node* const node = root_.get("tensors");
    if (node == nullptr) return OkStatus();
    KILN_ASSIGN_OR_RETURN(const toml::table* const table, TableOf(*node, "tensors"));
    for (const auto& [key, value] : InOrder(*table)) {
      KILN_ASSIGN_OR_RETURN(TensorDeclaration tensor, Tensor(*key, *value));
      text_.tensors.push_back(std::move(tensor));
    }
    return OkStatus();
  }

  Status ReadReference() {
    const toml::node* const node = root_.get("reference");
    if (node == nullptr) return OkStatus();
    KILN_ASSIGN_OR_RETURN(const toml::table* const table, TableOf(*node, "reference"));
    KILN_RETURN_IF_ERROR(CheckKeys(*table, kReferenceKeys, " of the reference"));
    Reference reference{.code = text_.code};
    // Another file has another source.
    if (table->contains("file")) reference.code.source.clear();
    KILN_RETURN_IF_ERROR(ReadCode(*table, reference.code));
    const bool other = reference.code.file != text_.code.file;
    if (other) {
      const StatusOr<Language> language = LanguageOfFile(reference.code.file);
      if (!language.ok() || *language != text_.language) {
        return ErrorAt(table->source(), "the reference is '{}', expected a source in {}",
                       reference.code.file, LanguageName(text_.language));
      }
    }
    if (const toml::node* const given = table->get("parameters")) {
      KILN_ASSIGN_OR_RETURN(const toml::table* const values, TableOf(*given, "parameters"));
      for (const auto& [key, value] : InOrder(*values)) {
        const auto named = std::ranges::find(text_.parameters, key->str(), &Parameter::name);
        if (named == text_.parameters.end())
          return ErrorAt(key->source(), "'{}' is no parameter of the kernel", key->str());
        KILN_ASSIGN_OR_RETURN(ParameterValue one, ValueOf(*value, key->str()));
        if (one.index() != named->values[0].index())
          return ErrorAt(value->source(), "{} is {}, expected a value of the kind that {} has",
                         key->str(), KindOf(*value), named->name);
        reference.parameters.emplace_back(key->str(), std::move(one));
      }
    }
    text_.reference = std::move(reference);
    KILN_RETURN_IF_ERROR(CheckReferenceNames(*table));
    return OkStatus();
  }

  // The reference's expressions may name the parameters for which it has values.
  Status CheckReferenceNames(const toml::table& table) {
    std::set<std::string> known = constants_;
    for (const auto& [name, value] : text_.reference->parameters) {
      if (!std::holds_alternative<std::string>(value)) known.insert(name);
    }
    std::swap(known, numbers_);
    const Status status = CheckCode(table, text_.reference->code);
    std::swap(known, numbers_);
    return status;
  }

  Status CheckWhatItComputes() {
    if (const toml::node* const node = root_.get("flops")) {
      KILN_ASSIGN_OR_RETURN(text_.flops, ExpressionOf(*node, "flops"));
      std::set<std::string> all = std::exchange(numbers_, constants_);
      const Status named = CheckNames(*text_.flops, node->source(), "flops");
      numbers_ = std::move(all);
      KILN_RETURN_IF_ERROR(named);
    }
    const ComputationSource& from = text_.computation;
    const int ways =
        (from.op.empty() ? 0 : 1) + (from.file.empty() ? 0 : 1) + (text_.reference ? 1 : 0);
    if (ways != 1) {
      return ErrorAt(root_.source(),
                     "{} what the kernel must compute, expected one of operator = \"matmul\" with "
                     "args, computation = \"FILE.te\", and [reference]",
                     ways == 0 ? "nothing says" : "there is more than one of");
    }
    if (from.op.empty() && !(from.args + from.dtype + from.out_dtype + from.epilogue).empty())
      return ErrorAt(root_.source(), "args, dtype, out_dtype and epilogue are of an operator");
    if (text_.reference.has_value() == text_.tensors.empty()) {
      return ErrorAt(root_.source(),
                     "[tensors] and [reference] go together: a computation has its own inputs and "
                     "outputs");
    }
    if (text_.flops && !text_.reference)
      return ErrorAt(root_.source(), "flops is for a reference kernel: a computation has its own");
    return OkStatus();
  }

  const toml::table& root_;
  KernelText text_;
  // Constants and parameters.
  std::set<std::string> names_;
  // Names that expressions may use.
  std::set<std::string> numbers_;
  // The constants among the names.
  std::set<std::string> constants_;
};

StatusOr<toml::table> ParseTable(std::string_view text) {
  if (text.size() > kMaxKernelTextBytes) {
    return InvalidArgument("the text has {} bytes, expected at most {}", text.size(),
                           kMaxKernelTextBytes);
  }
  toml::table table;
  if (const auto mistake = ParseToml(text, table)) {
    return ErrorAt(mistake->where, "{}", mistake->description);
  }
  return table;
}

// Sources are put into this text, so they must be UTF-8 text themselves.
Status CheckSource(const Code& code) {
  if (!IsUtf8(code.source) || code.source.find('\0') != std::string::npos)
    return InvalidArgument("{} is no text in UTF-8", code.file);
  return OkStatus();
}

}  // namespace

StatusOr<KernelText> ParseKernelText(std::string_view toml) {
  KILN_ASSIGN_OR_RETURN(const toml::table root, ParseTable(toml));
  KernelText text;
  std::string language;
  KILN_RETURN_IF_ERROR(ReadString(root, "language", language));
  if (language != "c" && language != "cuda") {
    return ErrorAt(root.source(), "the language is '{}', expected language = \"c\" or \"cuda\"",
                   language);
  }
  text.language = language == "c" ? Language::kC : Language::kCuda;
  KILN_ASSIGN_OR_RETURN(text, KernelTextParser(root).Parse(std::move(text)));
  if (text.code.source.empty() || (text.reference && text.reference->code.source.empty()))
    return ErrorAt(root.source(), "there is no source = \"...\", the kernel itself");
  return text;
}

StatusOr<KernelText> ParseSpaceFile(std::string_view toml, Language language, std::string file,
                                    std::string source) {
  KILN_ASSIGN_OR_RETURN(const toml::table root, ParseTable(toml));
  for (const char* const key : {"language", "file", "source"}) {
    if (const toml::node* const node = root.get(key))
      return ErrorAt(node->source(), "{} is that of {}: leave it out", key, file);
  }
  KernelText text{.language = language,
                  .code = {.file = std::move(file), .source = std::move(source), .function = {}}};
  KILN_RETURN_IF_ERROR(CheckSource(text.code));
  return KernelTextParser(root).Parse(std::move(text));
}

}  // namespace kiln::handwritten
