#include "scheduler/drift_marks.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"

namespace kiln::scheduler {
namespace {

// A trial's result is on its way for less, unless the database was away.
constexpr double kLate_s = 300;
// Unix times beyond these are of no clock that is right.
constexpr double kLatest_s = 1e12;

int64_t Seconds(double unix_s) {
  return static_cast<int64_t>(std::floor(std::clamp(unix_s, 0.0, kLatest_s)));
}

}  // namespace

bool DriftMarks::Mark(const v1::DriftSpan& span) {
  store::SlowSpan slow = {
      .runner = span.worker(), .from_s = Seconds(span.from_s()), .reason = span.reason()};
  if (span.to_s() != 0) slow.to_s = Seconds(span.to_s());
  const auto marked = store_.MarkRecords(slow);
  if (!marked.ok()) {
    LogWarn("cannot mark the records of runner {}: {}", span.worker(), Message(marked.status()));
    return false;
  }
  if (*marked > 0)
    LogInfo("{} records of runner {} are marked: {}", *marked, span.worker(), span.reason());
  return true;
}

void DriftMarks::Take(const google::protobuf::RepeatedPtrField<v1::DriftSpan>& spans) {
  const double now_s = clock_.MonotonicSeconds();
  std::map<Key, Known> told;
  for (const v1::DriftSpan& span : spans) {
    if (std::isnan(span.from_s()) || std::isnan(span.to_s())) continue;
    const Key key(span.worker(), span.from_s());
    const auto it = known_.find(key);
    const bool is_new = it == known_.end() || it->second.to_s != span.to_s();
    const Known known = is_new ? Known{span.to_s(), now_s + kLate_s} : it->second;
    const bool is_done = !is_new && span.to_s() != 0 && now_s > known.until_s;
    if (is_done || Mark(span)) told[key] = known;
  }
  // A span that the tracker tells no longer needs no memory.
  known_ = std::move(told);
}

}  // namespace kiln::scheduler
