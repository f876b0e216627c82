// The way in which a reduction combines values: by a combiner of the language, or by one that a
// person wrote.
//
// A written combiner says how two values, of one or several parts, become one, and with which value
// a reduction starts:
//
//   combine complex_product(ar: float32, ai: float32; br, bi) from (1.0, 0.0) =
//       (ar*br - ai*bi, ar*bi + ai*br)
//
// Schedules cut reductions into pieces, reorder them, and start pieces from the identity. A
// combiner must therefore be associative and commutative, and a combination with its identity must
// not change a value (check_combiner.h). The result for ties (the index of the larger of two equal
// values) may depend on the schedule.
//
// These are values; a combiner is immutable and shared between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"

namespace kiln::dag {

// kArgMax/kArgMin have two bodies (index, value), and ties go to the smaller index. kAny and kAll
// take bools. kCustom is a written combiner with one body for each part. The others combine each of
// their bodies by itself: a sum with two bodies is two sums over the same axes.
enum class Combiner : uint8_t {
  kNone,
  kSum,
  kProd,
  kMax,
  kMin,
  kArgMax,
  kArgMin,
  kAny,
  kAll,
  kCustom
};
inline bool IsArg(Combiner combiner) {
  return combiner == Combiner::kArgMax || combiner == Combiner::kArgMin;
}
// Limit of the outputs of one operator. All outputs have its axes, and each has its own type.
inline constexpr int kMaxOutputs = 8;
// Returns "sum", "prod", "max", "min", "argmax", "argmin", "any", "all", and "" for kNone and
// kCustom.
std::string_view CombinerName(Combiner combiner);
// Returns false if the name is none of these.
bool ParseCombiner(std::string_view name, Combiner* combiner);

struct CustomCombiner {
  struct Part {
    // Names of the parameters for the two values.
    std::string left, right;
    ir::Type type;
    // The check draws values in [low, high). If low == high, it draws from its usual range.
    double low = 0, high = 0;
    bool operator==(const Part&) const = default;
  };
  std::string name;
  std::vector<Part> parts;
  // One constant for each part.
  std::vector<ir::Expr> identity;
  // One expression for each part. Variable i is the i-th part of the left value, and variable n + i
  // that of the right one.
  std::vector<ir::Expr> results;
  // Keeps identity and results alive.
  std::shared_ptr<const ir::ExprPool> pool;
};
using CustomCombinerPtr = std::shared_ptr<const CustomCombiner>;

// True if names, parts and expressions are the same.
bool Equal(const CustomCombiner& a, const CustomCombiner& b);

struct Reduction {
  Reduction(Combiner kind) : kind(kind) {}  // NOLINT: a combiner of the language is one
  explicit Reduction(CustomCombinerPtr written)
      : kind(Combiner::kCustom), custom(std::move(written)) {}

  Combiner kind;
  // Set for kCustom.
  CustomCombinerPtr custom = nullptr;
  bool operator==(const Reduction& other) const;
};

// Returns the initial value of a reduction: sum 0, prod 1, max the lowest value (-inf for floats),
// min the highest, any false, all true. For argmax/argmin it is (the highest index of its type, the
// value of max/min), which is neutral since ties go to the smaller index.
ir::Expr ReduceIdentity(const Reduction& reduction, int output, ir::Type type, ir::ExprPool& pool);
// Returns the combination of accumulator and source: combined[k] from accumulators[0..n-1] and
// sources[0..n-1].
std::vector<ir::Expr> Combine(const Reduction& reduction, std::span<const ir::Expr> accumulators,
                              std::span<const ir::Expr> sources, ir::ExprPool& pool);

}  // namespace kiln::dag
