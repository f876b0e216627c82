// The text form of a template: a schedule that a person wrote, with knobs. docs/templates.md
// describes it.
//
//   template tiled_matmul for cpu
//   stage C = reduction()
//   i, j = axes(C)
//   k = reduce_axes(C)
//   knob tile_j = split(j, outputs=2)
//   jo, ji = split(j, tile_j)
//   reorder(i, jo, k, ji)
//   vectorize(ji)
//
// Immutable values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/formula/expression.h"

namespace kiln::search {

using formula::AtPosition;
using formula::Expression;
using formula::IsNumericFunction;
using formula::TextPosition;

// The most bytes, and the most statements, of a text.
inline constexpr size_t kMaxTemplateBytes = 1 << 20;
inline constexpr size_t kMaxTemplateStatements = 4096;

struct Statement {
  enum class Kind : uint8_t {
    kStage,    // stage NAME = word(args)
    kLet,      // let NAME = args[0]
    kKnob,     // knob NAME = word(args, options), or with word "choice" knob NAME = [args]
    kFilter,   // filter args[0]
    kRequire,  // require args[0]
    kStep,     // names = word(args) if condition
  };
  Kind kind = Kind::kStep;
  std::vector<std::string> names = {};  // names that the statement gives a meaning
  std::string word = {};
  std::vector<Expression> args = {};
  std::vector<std::pair<std::string, Expression>> options = {};
  std::optional<Expression> condition = {};
  TextPosition at = {};

  // Ignores the position.
  bool operator==(const Statement& other) const {
    return kind == other.kind && names == other.names && word == other.word && args == other.args &&
           options == other.options && condition == other.condition;
  }
};

struct TemplateText {
  std::string name;
  bool for_gpu = false;
  std::vector<Statement> statements;

  bool operator==(const TemplateText&) const = default;
};

// InvalidArgument "line 3, column 14: ..." says what was found and what was expected. All words and
// the meanings of all names are checked. Whether the statements fit a computation is not checked.
StatusOr<TemplateText> ParseTemplate(std::string_view text);

// Prints one statement a line. ParseTemplate(PrintTemplate(x)) == x; comments are lost.
std::string PrintTemplate(const TemplateText& text);

}  // namespace kiln::search
