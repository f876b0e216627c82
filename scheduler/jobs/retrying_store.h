// The store as a job sees it. Every call waits while the medium refuses for now, because results
// are worth more than the time.
//
// A full disk, a locked file, an I/O error and a file that was moved away (Unavailable,
// ResourceExhausted) are tried again once a second, until the call goes through, until `stop` is
// requested, which gives Cancelled, or until `until`, which gives the error itself. A call that
// failed has changed nothing, so repeating it is safe. Logs when a wait begins, when its reason
// changes, and when it ends. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>

#include "store/store_decorator.h"

namespace kiln::scheduler {

class RetryingStore : public store::StoreDecorator {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr TimePoint kForEver = TimePoint::max();

  // `name` names the owner of this store in the log.
  RetryingStore(store::Store& store, std::string name, std::stop_token stop,
                std::chrono::milliseconds pause = std::chrono::seconds(1),
                TimePoint until = kForEver);

  // Returns the reason why calls wait now, or "" if none waits.
  std::string problem() const;

 protected:
  Status Around(Access access, const std::function<Status()>& call) override;

 private:
  void NoteProblem(const Status& status);
  void NoteEnd();

  const std::string name_;
  const std::stop_token stop_;
  const std::chrono::milliseconds pause_;
  const TimePoint until_;

  mutable std::mutex mutex_;
  std::condition_variable_any stopped_;
  int waiting_ = 0;  // number of calls that wait
  std::string problem_;
};

}  // namespace kiln::scheduler
