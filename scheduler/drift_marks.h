// Marks the records that were measured while a device was slower than usual (docs/device-state.md).
//
// The tracker tells the same spans again and again, for a day. A span that goes on is marked each
// time. A span that has ended is marked for some minutes more, because results come late, and then
// left alone. Not thread-safe. Errors of the store are logged, and the span is marked the next
// time.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/clock.h"
#include "proto/tracker.pb.h"
#include "store/store.h"

namespace kiln::scheduler {

class DriftMarks {
 public:
  // Both outlive the object.
  DriftMarks(store::Store& store, Clock& clock) : store_(store), clock_(clock) {}

  // Marks the records of the spans. Cost: an index look-up for each span that is not done.
  void Take(const google::protobuf::RepeatedPtrField<v1::DriftSpan>& spans);

 private:
  // The last state of a span.
  struct Known {
    double to_s = 0;
    // Monotonic time up to which late results are expected.
    double until_s = 0;
  };
  // Worker and begin of the span.
  using Key = std::pair<std::string, double>;

  bool Mark(const v1::DriftSpan& span);

  store::Store& store_;
  Clock& clock_;
  std::map<Key, Known> known_;
};

}  // namespace kiln::scheduler
