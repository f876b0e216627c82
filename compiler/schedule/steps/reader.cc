#include "compiler/schedule/steps/reader.h"

#include <limits>

#include "absl/container/inlined_vector.h"
#include "compiler/dag/limits.h"

namespace kiln::schedule {
namespace {

constexpr int64_t kMinInt = std::numeric_limits<int>::min();
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr int64_t kMinInt64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

}  // namespace

bool StepReader::HasNext() { return status_.ok() && json_.Peek() == ','; }

bool StepReader::NextItem(std::string_view what) {
  if (!status_.ok()) return false;
  if (item_++ == 0 || json_.Take(',')) return true;
  status_ = json_.Error(fmt::format("',' and item {} ({})", item_ - 1, what));
  return false;
}

template <typename T>
T StepReader::Keep(StatusOr<T> value) {
  if (value.ok()) return *value;
  status_ = std::move(value).status();
  return T();
}

template <typename T>
std::vector<T> StepReader::List(std::string_view what, int64_t lowest, int64_t highest, int most) {
  if (!NextItem(what)) return {};
  if (!json_.Take('[')) {
    status_ = json_.Error(fmt::format("{} as a list of integers", what));
    return {};
  }
  if (json_.Take(']')) return {};
  // Values are gathered here, so that the result is allocated once, with the right size.
  absl::InlinedVector<T, 32> values;
  do {
    if (values.size() == static_cast<size_t>(most)) {
      status_ = json_.Error(
          fmt::format("the end of {}, which has {} items, the most there may be", what, most));
      return {};
    }
    values.push_back(static_cast<T>(Keep(json_.Int(what, lowest, highest))));
    if (!status_.ok()) return {};
  } while (json_.Take(','));
  if (!json_.Take(']')) status_ = json_.Error(fmt::format("',' or ']' in {}", what));
  return std::vector<T>(values.begin(), values.end());
}

int StepReader::Int(std::string_view what) {
  if (!NextItem(what)) return 0;
  return static_cast<int>(Keep(json_.Int(what, kMinInt, kMaxInt)));
}

int64_t StepReader::Int64(std::string_view what) {
  if (!NextItem(what)) return 0;
  return Keep(json_.Int(what, 0, kMaxInt64));
}

bool StepReader::Flag(std::string_view what) {
  if (!NextItem(what)) return false;
  return Keep(json_.Int(what, 0, 1)) == 1;
}

std::vector<int> StepReader::Ints(std::string_view what) {
  return List<int>(what, kMinInt, kMaxInt, dag::kMaxOperators);
}

std::vector<int64_t> StepReader::Int64s(std::string_view what) {
  return List<int64_t>(what, kMinInt64, kMaxInt64, dag::kMaxStageLoops);
}

std::string_view StepReader::Text(std::string_view what) {
  if (!NextItem(what)) return {};
  if (json_.Peek() != '"') {
    status_ = json_.Error(fmt::format("{} as a string", what));
    return {};
  }
  return Keep(json_.PlainString(what));
}

}  // namespace kiln::schedule
