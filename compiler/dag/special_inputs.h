// Inputs with numbers at which programs go wrong, and the results that programs must have for them.
// NaN, infinities, -0 and denormals mean the same on every device and under every schedule
// (docs/text-form.md).
//
// Values; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"

namespace kiln::dag {

struct SpecialValue {
  std::string_view name;
  double value;
};
// Returns NaN, both infinities, -0, and two denormals of float32, of both signs.
std::span<const SpecialValue> SpecialValues();

// An element of a float input.
struct SpecialPlace {
  size_t input = 0;
  // Row-major.
  int64_t element = 0;
  // "first", "middle" or "last".
  std::string_view name;
};
// Returns the first, a middle and the last element of each input of floats. The seed determines the
// middle one.
std::vector<SpecialPlace> SpecialPlaces(const Dag& dag, uint64_t seed);

// Returns "nan at the last place of input 1".
std::string Describe(const SpecialValue& value, const SpecialPlace& place);

// Returns the inputs with the value at the place.
std::vector<ir::NDArray> WithSpecial(std::span<const ir::NDArray> inputs, const SpecialPlace& place,
                                     const SpecialValue& value);

// The usual inputs of the seed with one special value, and the oracle's outputs for them.
struct SpecialCase {
  // The text of Describe.
  std::string name;
  std::vector<ir::NDArray> inputs, outputs;
};
// Returns a case for each value at each place. Errors are those of the oracle.
StatusOr<std::vector<SpecialCase>> SpecialCases(const Dag& dag, uint64_t seed);

// Compares outputs of a computation with those of the oracle. NaN equals NaN, an infinity equals
// the same infinity, and numbers must be near (ir::DefaultTolerance). In addition:
//   * a zero has the oracle's sign if only minima, maxima and choices are computed;
//   * a denormal is not zero if nothing is summed, because a sum may absorb it;
//   * if the oracle has NaN, a program that computes a softmax online may have the value of the
//     online variant of the computation (online_variant.h), and nothing else.
class SpecialJudge {
 public:
  explicit SpecialJudge(const Dag& dag);

  // Returns the number of elements that are right only as those of the online variant, and 0 if all
  // are the oracle's. The error is the first wrong element. is_online: the program computes a
  // softmax online.
  StatusOr<int64_t> Judge(std::span<const ir::NDArray> found, const SpecialCase& one,
                          bool is_online) const;

 private:
  Status Compare(std::span<const ir::NDArray> found, std::span<const ir::NDArray> expected) const;
  Status CompareZeros(const ir::NDArray& found, const ir::NDArray& expected) const;

  bool keeps_signs_ = true, keeps_denormals_ = true;
  // Null: there is no online variant.
  DagPtr online_;
};

}  // namespace kiln::dag
