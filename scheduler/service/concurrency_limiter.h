// Limits the concurrency of expensive calls: few run at once, a few more wait in line, and the time
// of each is limited.
//
// Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <stop_token>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"

namespace kiln::scheduler {

class ConcurrencyLimiter {
 public:
  struct Options {
    std::string what;  // names the work in messages: "choice of a schedule"
    int at_work = 2;
    int in_line = 64;
    // Longest time of one call's work, without its wait in line.
    absl::Duration longest = absl::InfiniteDuration();
  };

  explicit ConcurrencyLimiter(Options options) : options_(std::move(options)) {}

  // Runs `work` when its turn comes, and returns its status. The stop token of `work` is requested
  // when `gone` says that the caller has gone, which another thread asks ten times a second, and
  // when the work has taken the longest time. Returns without working: ResourceExhausted if the
  // line is full, Cancelled if the caller goes while it waits. DeadlineExceeded if the work was
  // stopped for its time.
  Status Do(std::function<bool()> gone, const std::function<Status(const std::stop_token&)>& work);

 private:
  Status Enter(const std::function<bool()>& gone);
  void Leave();

  const Options options_;
  std::mutex mutex_;
  int at_work_ = 0;
  int in_line_ = 0;
};

}  // namespace kiln::scheduler
