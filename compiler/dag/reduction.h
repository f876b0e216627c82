// How a reduction combines values: with a combiner of the language, or with one that a person wrote.
//
// A written combiner says how two values, of one or several parts, become one, and from what a
// reduction starts:
//
//   combine complex_product(ar: float32, ai: float32; br, bi) from (1.0, 0.0) =
//       (ar*br - ai*bi, ar*bi + ai*br)
//
// Schedules cut reductions into pieces, reorder them, and start pieces from the identity. So a
// combiner must be associative and commutative and keep what it combines with its identity
// (check_combiner.h). What it makes of ties (the index of the larger of two equal values) may depend
// on the schedule.
//
// Values; a combiner is immutable and shared between threads.
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

// kArgMax/kArgMin have two bodies (index, value): ties go to the smaller index. kAny and kAll are
// of bools. kCustom is a written one, of as many bodies as it has parts. The others combine each of
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
// Outputs of one operator: all have its axes, each has a type of its own.
inline constexpr int kMaxOutputs = 8;
// "sum", "prod", "max", "min", "argmax", "argmin", "any", "all"; of kNone and kCustom: "".
std::string_view CombinerName(Combiner combiner);
// False when the name is none of these.
bool ParseCombiner(std::string_view name, Combiner* combiner);

struct CustomCombiner {
  struct Part {
    std::string left, right;  // names of the parameters, of both values
    ir::Type type;
    // Values that the check takes are in [low, high); low == high: what it takes otherwise.
    double low = 0, high = 0;
    bool operator==(const Part&) const = default;
  };
  std::string name;
  std::vector<Part> parts;
  std::vector<ir::Expr> identity;  // a constant for each part
  // For each part: of variable i, the i-th part of the left value, and variable n + i, of the right.
  std::vector<ir::Expr> results;
  std::shared_ptr<const ir::ExprPool> pool;  // keeps both alive
};
using CustomCombinerPtr = std::shared_ptr<const CustomCombiner>;

// Same names, parts and expressions.
bool Equal(const CustomCombiner& a, const CustomCombiner& b);

struct Reduction {
  Reduction(Combiner kind) : kind(kind) {}  // NOLINT: a combiner of the language is one
  explicit Reduction(CustomCombinerPtr written)
      : kind(Combiner::kCustom), custom(std::move(written)) {}

  Combiner kind;
  CustomCombinerPtr custom = nullptr;  // of kCustom
  bool operator==(const Reduction& other) const;
};

// What a reduction starts from: sum 0, prod 1, max the lowest value (-inf for floats), min the
// highest, any false, all true. For argmax/argmin: (the highest index of its type, value as
// max/min), which is neutral since ties go to the smaller index.
ir::Expr ReduceIdentity(const Reduction& reduction, int output, ir::Type type, ir::ExprPool& pool);
// The combination of accumulator and source: combined[k] from accumulators[0..n-1] and
// sources[0..n-1].
std::vector<ir::Expr> Combine(const Reduction& reduction, std::span<const ir::Expr> accumulators,
                              std::span<const ir::Expr> sources, ir::ExprPool& pool);

}  // namespace kiln::dag
