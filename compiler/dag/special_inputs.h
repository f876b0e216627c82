// Inputs with numbers at which programs go wrong, and what they must give for them: NaN, infinities,
// -0 and denormals mean the same on every device and under every schedule (docs/text-form.md).
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
// NaN, both infinities, -0, and two denormals of float32, of both signs.
std::span<const SpecialValue> SpecialValues();

// An element of a float input.
struct SpecialPlace {
  size_t input = 0;
  int64_t element = 0;    // row-major
  std::string_view name;  // "first", "middle", "last"
};
// The first, a middle and the last element of each input that has floats; which one is in the middle
// depends on the seed.
std::vector<SpecialPlace> SpecialPlaces(const Dag& dag, uint64_t seed);

// "nan at the last place of input 1"
std::string Describe(const SpecialValue& value, const SpecialPlace& place);

// The inputs with the value at the place.
std::vector<ir::NDArray> WithSpecial(std::span<const ir::NDArray> inputs, const SpecialPlace& place,
                                     const SpecialValue& value);

// The usual inputs of the seed with one special value, and what the oracle makes of them.
struct SpecialCase {
  std::string name;  // as Describe says
  std::vector<ir::NDArray> inputs, outputs;
};
// Each value at each place. Errors: those of the oracle.
StatusOr<std::vector<SpecialCase>> SpecialCases(const Dag& dag, uint64_t seed);

// What outputs of one computation may differ in from those of the oracle. NaN is NaN, an infinity is
// the same infinity, numbers are near (ir::DefaultTolerance). Besides:
//   * a zero has the oracle's sign where nothing is computed but minima, maxima and choices;
//   * a denormal is not zero where nothing is summed: a sum of others may swallow it;
//   * where the oracle has NaN, a program that computes a softmax online may have what the online
//     variant of the computation has (online_variant.h), and nothing else.
class SpecialJudge {
 public:
  explicit SpecialJudge(const Dag& dag);

  // How many elements are right as those of the online variant alone; 0: all are the oracle's. An
  // error: the first that is wrong. is_online: the program computes a softmax online.
  StatusOr<int64_t> Judge(std::span<const ir::NDArray> found, const SpecialCase& one,
                          bool is_online) const;

 private:
  Status Compare(std::span<const ir::NDArray> found, std::span<const ir::NDArray> expected) const;
  Status CompareZeros(const ir::NDArray& found, const ir::NDArray& expected) const;

  bool keeps_signs_ = true, keeps_denormals_ = true;
  DagPtr online_;  // null: there is no variant
};

}  // namespace kiln::dag
