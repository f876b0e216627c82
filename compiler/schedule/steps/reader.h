// Reads the JSON of steps, item by item, straight from the text: records are replayed by the
// thousands.
//
// The first mistake sticks: later reads return zeros, and Make reports it. Only what steps are made
// of is understood: arrays of integers, strings without escapes, and lists of integers.
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

  // ---- one step, after Open and Tag: its items in order, `what` names them in errors
  int Int(std::string_view what);
  int64_t Int64(std::string_view what);
  bool Flag(std::string_view what);                    // 0 or 1
  std::vector<int> Ints(std::string_view what);        // stages, loops, steps
  std::vector<int64_t> Int64s(std::string_view what);  // of the loops of one stage
  std::string_view Text(std::string_view what);
  bool HasNext();  // for items that may be left out

  // The step, when every item was right and the array ends here.
  template <typename StepT, typename... Args>
  StatusOr<StepPtr> Make(Args&&... args) {
    if (status_.ok() && !TryTake(']')) Fail("the end of the step");
    if (!status_.ok()) return status_;
    return StepPtr(std::make_shared<const StepT>(std::forward<Args>(args)...));
  }

  // ---- around it
  bool TryTake(char c);  // skips blanks, takes c if it comes next
  bool AtEnd();          // nothing but blanks is left
  void BeginStep() { item_ = 0; }
  // The error of something else than `expected` being at this place; keeps the first one.
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
