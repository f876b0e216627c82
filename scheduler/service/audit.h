// Keeps who did what to the farm. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "store/store.h"

namespace kiln::scheduler {

class Audit {
 public:
  // The newest entries stay.
  static constexpr int64_t kKept = 100'000;

  // Store and clock outlive this object.
  Audit(store::Store& store, Clock& clock) : store_(store), clock_(clock) {}

  // Keeps that `user` made the call ("Scheduler.CancelJob") for `subject` ("job 3f2a"). An error in
  // `result` says why it was refused. If the database is away, the entry goes to the log alone:
  // what was done is not undone.
  void Add(std::string_view user, std::string_view call, std::string_view subject,
           const Status& result);

 private:
  store::Store& store_;
  Clock& clock_;
};

}  // namespace kiln::scheduler
