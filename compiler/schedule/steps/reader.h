// Reads the items of one step from a list of steps, straight from the text, because records are
// replayed by the thousands.
//
// The first mistake sticks: later reads return zeros, and Make reports it. The reader only knows
// the parts of steps: integers, strings without escapes, and lists of integers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json_cursor.h"
#include "base/status.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {

class StepReader {
 public:
  // `json` stands behind the '[' of the step, and must outlive the reader. Make leaves it behind
  // the ']'.
  explicit StepReader(JsonCursor& json) : json_(json) {}

  // Items are read in order. `what` names them in errors. A text lives as long as the text of json.
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
    if (status_.ok() && !json_.Take(']')) status_ = json_.Error("the end of the step");
    if (!status_.ok()) return status_;
    return StepPtr(std::make_shared<const StepT>(std::forward<Args>(args)...));
  }

  // Returns the first mistake.
  const Status& status() const { return status_; }

 private:
  // Moves to the next item. False after a mistake.
  bool NextItem(std::string_view what);
  // Returns the value; or a value of zeros, and keeps the error.
  template <typename T>
  T Keep(StatusOr<T> value);
  template <typename T>
  std::vector<T> List(std::string_view what, int64_t lowest, int64_t highest, int most);

  JsonCursor& json_;
  int item_ = 0;
  Status status_;
};

}  // namespace kiln::schedule
