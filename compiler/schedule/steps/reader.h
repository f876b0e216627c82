// Reads the JSON of steps, item by item, straight from the text, because records are replayed by
// the thousands.
//
// The first mistake sticks: later reads return zeros, and Make reports it. The reader only knows
// the parts of steps: arrays of integers, strings without escapes, and lists of integers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {

class StepReader {
 public:
  explicit StepReader(std::string_view text) : text_(text) {}

  // ---- one step, after Open and Tag: its items in order. `what` names them in errors.
  int Int(std::string_view what);
  int64_t Int64(std::string_view what);
  // Reads 0 or 1.
  bool Flag(std::string_view what);
  // Reads stages, loops or steps.
  std::vector<int> Ints(std::string_view what);
  // Reads values for the loops of one stage.
  std::vector<int64_t> Int64s(std::string_view what);
  std::string_view Text(std::string_view what);
  // For items that may be left out.
  bool HasNext();

  // Makes the step. Fails if an item was wrong or the array does not end here.
  template <typename StepT, typename... Args>
  StatusOr<StepPtr> Make(Args&&... args) {
    if (status_.ok() && !TryTake(']')) Fail("the end of the step");
    if (!status_.ok()) return status_;
    return StepPtr(std::make_shared<const StepT>(std::forward<Args>(args)...));
  }

  // ---- the text around the step
  // Skips blanks, and takes c if it comes next.
  bool TryTake(char c);
  // True if only blanks are left.
  bool AtEnd();
  void BeginStep() { item_ = 0; }
  // Reports that `expected` is not at this place. Keeps the first error.
  const Status& Fail(std::string_view expected);
  const Status& status() const { return status_; }

 private:
  bool NextItem(std::string_view what);
  int64_t Integer(std::string_view what, int64_t lowest, int64_t highest);
  template <typename T>
  std::vector<T> List(std::string_view what, int64_t lowest, int64_t highest, int most);
  void SkipBlanks();

  const std::string_view text_;
  size_t at_ = 0;
  int item_ = 0;
  Status status_;
};

}  // namespace kiln::schedule
