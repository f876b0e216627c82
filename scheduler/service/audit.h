// Keeps who did what to the farm. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "scheduler/service/refusal_limit.h"
#include "store/store.h"

namespace kiln::scheduler {

class Audit {
 public:
  // The newest entries stay.
  static constexpr int64_t kKept = 100'000;
  // Most entries of NoteRefused that wait for Flush.
  static constexpr size_t kMostNoted = 1'000;

  // Store and clock outlive this object.
  Audit(store::Store& store, Clock& clock) : store_(store), clock_(clock) {}

  // Keeps that `user` made the call ("Scheduler.CancelJob") for `subject` ("job 3f2a"). An error in
  // `result` says why it was refused. Refusals beyond a limit (RefusalLimit) are counted, and their
  // number gets one entry. If the database is away, the entry goes to the log alone: what was done
  // is not undone.
  void Add(std::string_view user, std::string_view call, std::string_view subject,
           const Status& result);
  // Notes a call that was refused before its service heard of it; `user` is "" for a stranger. Does
  // not wait for the database: Flush writes the entry.
  void NoteRefused(std::string_view user, std::string_view call, const Status& why);
  // Writes what was noted, and the numbers of refusals that are complete. Add does it, too.
  void Flush();

 private:
  store::AuditRow Row(std::string_view user, std::string_view call, std::string_view subject,
                      const Status& result) const;
  void Write(const store::AuditRow& row);
  // The caller holds mutex_.
  void NoteRests();
  void Note(store::AuditRow row);

  store::Store& store_;
  Clock& clock_;
  std::mutex mutex_;
  // Both are guarded by mutex_.
  RefusalLimit refusals_;
  std::deque<store::AuditRow> noted_;
};

}  // namespace kiln::scheduler
