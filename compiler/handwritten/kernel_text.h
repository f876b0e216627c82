// The text of a kernel that a person wrote: C or CUDA C with named parameters, the values that each
// may have, the launch, and the computation that the kernel must do. docs/howto/tune-a-kernel.md
// describes the form, which is TOML. The text expresses what Kernel Tuner calls tune_params,
// restrictions, block_size_x and answer (van Werkhoven, Kernel Tuner, Future Generation Computer
// Systems 90, 2019).
//
//   kernel = "matmul"
//   operator = "matmul"
//   args = "1024,1024,1024"
//   restrictions = ["tile_x * block_size_x <= 256"]
//   grid = ["ceil_div(N, tile_x * block_size_x)", "ceil_div(N, block_size_y)"]
//   [constants]
//   N = 1024
//   [parameters]
//   block_size_x = [16, 32]
//   block_size_y = [4, 8]
//   tile_x = [1, 2, 4]
//
// A user has two files, one of the kernel and one of its space. Jobs and build requests carry one
// text that holds both, so that no service needs a file.
//
// Immutable values; any thread. Any bytes are fine as input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "compiler/formula/expression.h"
#include "compiler/ir/type.h"

namespace kiln::handwritten {

using formula::Expression;

// Limit of the bytes of a text, including sources.
inline constexpr size_t kMaxKernelTextBytes = 1 << 20;

enum class Language : uint8_t { kC, kCuda };
// Returns "c" or "cuda".
std::string_view LanguageName(Language language);
// Decides by the end of the path: .c or .cu. InvalidArgument: the path ends otherwise.
StatusOr<Language> LanguageOfFile(std::string_view path);
// Returns true for the name of a file of such a language.
bool IsKernelFile(std::string_view path);

using ParameterValue = std::variant<bool, int64_t, std::string>;
// Returns the value as the source sees it: "1", "32", "float4".
std::string MacroText(const ParameterValue& value);

struct Parameter {
  std::string name;
  // At least one, all of one kind, none twice.
  std::vector<ParameterValue> values;
  bool operator==(const Parameter&) const = default;
};
using NamedValue = std::pair<std::string, ParameterValue>;

// One argument of the function: a tensor of the computation, a number, or, in C, the number of the
// block of the grid that is to be computed.
struct KernelArgument {
  // The tensor's name, or its number as in "input0", "output0". "": the argument is no tensor.
  std::string tensor = {};
  // 'x', 'y' or 'z'. '\0': the argument is no block.
  char block = '\0';
  // Type of a number.
  ir::Type type = {};
  std::variant<Expression, double> number = {};
  bool operator==(const KernelArgument&) const = default;
};

// A function of a source and the way to call it.
struct Code {
  // The source's name, for messages.
  std::string file;
  // "": only the file is known.
  std::string source;
  // "matmul", or "matmul<float, 16>" for C++ templates.
  std::string function;
  // None: all inputs and outputs, in order.
  std::vector<KernelArgument> arguments = {};
  // One to three extents, x first. In C there may be none: the function is called once.
  std::vector<Expression> grid = {}, block = {};
  // Bytes of dynamic shared memory, for CUDA.
  std::optional<Expression> shared_bytes = {};
  // Options of the compiler (compiler_options.h).
  std::vector<std::string> options = {};
  bool operator==(const Code&) const = default;
};

// A kernel whose outputs are right, for texts without a computation. `parameters` are the values of
// its source's parameters.
struct Reference {
  Code code;
  std::vector<NamedValue> parameters = {};
  bool operator==(const Reference&) const = default;
};

// A tensor of a kernel that has a reference kernel.
struct TensorDeclaration {
  std::string name;
  bool is_output = false;
  ir::Type type = {};
  // Expressions of constants.
  std::vector<Expression> shape = {};
  bool operator==(const TensorDeclaration&) const = default;
};

// The computation as the user describes it. Services use the computation that comes with the text
// instead.
struct ComputationSource {
  // An operator.
  std::string op = {}, args = {}, dtype = {}, out_dtype = {}, epilogue = {};
  // A text file.
  std::string file = {};
  bool operator==(const ComputationSource&) const = default;
};

struct KernelText {
  Language language = Language::kC;
  Code code;
  // Expressions of extents and earlier constants.
  std::vector<std::pair<std::string, Expression>> constants = {};
  // In the order of the text.
  std::vector<Parameter> parameters = {};
  // A configuration is valid if all restrictions hold.
  std::vector<Expression> restrictions = {};
  ComputationSource computation = {};
  // An expression of constants, for a kernel with a reference kernel.
  std::optional<Expression> flops = {};
  std::vector<TensorDeclaration> tensors = {};
  std::optional<Reference> reference = {};
  bool operator==(const KernelText&) const = default;
};

// InvalidArgument "line 3, column 14: ..." with the text that was found and the form that was
// expected. Every key and name is checked. Whether they fit the computation is not checked.
StatusOr<KernelText> ParseKernelText(std::string_view toml);
// Parses a user's file, which gives neither the language nor the source: those of the kernel's own
// file are used. A reference that has its own file is still without its source.
StatusOr<KernelText> ParseSpaceFile(std::string_view toml, Language language, std::string file,
                                    std::string source);

// Returns true if the text has a reference kernel. Returns false for a text that does not parse,
// such as "".
bool HasReferenceKernel(std::string_view toml);

// ParseKernelText(PrintKernelText(x)) == x. Comments are lost.
std::string PrintKernelText(const KernelText& text);

// Identifies the parts of which a configuration's values make a program: sources, calls, constants.
// Lists of values, restrictions and the reference do not count. 64 hex digits.
std::string KernelDigest(const KernelText& text);

}  // namespace kiln::handwritten
