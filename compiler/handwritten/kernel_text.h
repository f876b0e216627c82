// The text of a kernel that a person wrote: C or CUDA C with named parameters, which values each
// may have, how it is launched, and what it must compute. docs/howto/tune-a-kernel.md describes the
// form, which is TOML; it says what users of Kernel Tuner know as tune_params, restrictions,
// block_size_x and answer (van Werkhoven, Kernel Tuner, Future Generation Computer Systems 90,
// 2019).
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
// A user has two files, of the kernel and of its space; one text that holds both is what jobs and
// build requests carry, so that no service needs a file.
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

// The most bytes of a text, sources included.
inline constexpr size_t kMaxKernelTextBytes = 1 << 20;

enum class Language : uint8_t { kC, kCuda };
std::string_view LanguageName(Language language);  // "c", "cuda"
// By the end of its name: .c or .cu. InvalidArgument: it has another one.
StatusOr<Language> LanguageOfFile(std::string_view path);
// Is it the name of a file of such a language?
bool IsKernelFile(std::string_view path);

using ParameterValue = std::variant<bool, int64_t, std::string>;
// As the source sees it: "1", "32", "float4".
std::string MacroText(const ParameterValue& value);

struct Parameter {
  std::string name;
  std::vector<ParameterValue> values;  // at least one, of one kind, none twice
  bool operator==(const Parameter&) const = default;
};
using NamedValue = std::pair<std::string, ParameterValue>;

// What the function takes at one place: a tensor of the computation; or a number; or, of C, which
// block of the grid is to be computed.
struct KernelArgument {
  std::string tensor = {};  // its name, or by number "input0", "output0"; "": it is no tensor
  char block = '\0';        // 'x', 'y' or 'z'; '\0': it is no block
  ir::Type type = {};       // of a number
  std::variant<Expression, double> number = {};
  bool operator==(const KernelArgument&) const = default;
};

// A function of a source, and how it is called.
struct Code {
  std::string file;                            // the source's name, for messages
  std::string source;                          // "": only the file is known
  std::string function;                        // "matmul", or of C++ templates "matmul<float, 16>"
  std::vector<KernelArgument> arguments = {};  // none: all inputs and outputs, in order
  // One to three extents, x first; of C none: the function is called once.
  std::vector<Expression> grid = {}, block = {};
  std::optional<Expression> shared_bytes = {};  // dynamic ones, of CUDA
  std::vector<std::string> options = {};        // of the compiler (compiler_options.h)
  bool operator==(const Code&) const = default;
};

// The kernel whose outputs are right, where no computation says what is to be computed: with these
// values for what its source has as parameters.
struct Reference {
  Code code;
  std::vector<NamedValue> parameters = {};
  bool operator==(const Reference&) const = default;
};

// A tensor that a kernel with a reference kernel takes.
struct TensorDeclaration {
  std::string name;
  bool is_output = false;
  ir::Type type = {};
  std::vector<Expression> shape = {};  // of constants
  bool operator==(const TensorDeclaration&) const = default;
};

// What it must compute, as its user says it. Services go by the computation that comes with the
// text, not by this.
struct ComputationSource {
  std::string op = {}, args = {}, dtype = {}, out_dtype = {}, epilogue = {};  // an operator
  std::string file = {};                                                      // a text file
  bool operator==(const ComputationSource&) const = default;
};

struct KernelText {
  Language language = Language::kC;
  Code code;
  std::vector<std::pair<std::string, Expression>> constants = {};  // of extents and earlier ones
  std::vector<Parameter> parameters = {};                          // in the order of the text
  std::vector<Expression> restrictions = {};  // a configuration is valid where all hold
  ComputationSource computation = {};
  std::optional<Expression> flops = {};  // of constants; of a kernel with a reference kernel
  std::vector<TensorDeclaration> tensors = {};
  std::optional<Reference> reference = {};
  bool operator==(const KernelText&) const = default;
};

// InvalidArgument "line 3, column 14: ...": what was found, and what was expected. Every key and
// name has been checked; what a computation makes of them has not.
StatusOr<KernelText> ParseKernelText(std::string_view toml);
// Of a user's file, which says neither the language nor the source: those of the kernel's own file.
// A reference that has a file of its own is still without its source.
StatusOr<KernelText> ParseSpaceFile(std::string_view toml, Language language, std::string file,
                                    std::string source);

// Does the text say so of a reference kernel? Not of a text that is none, "" for instance.
bool HasReferenceKernel(std::string_view toml);

// ParseKernelText(PrintKernelText(x)) == x; comments are lost.
std::string PrintKernelText(const KernelText& text);

// Identifies what a configuration's values make a program of: sources, calls, constants. Lists of
// values, restrictions and the reference are not in it. 64 hex digits.
std::string KernelDigest(const KernelText& text);

}  // namespace kiln::handwritten
