// Calls that take much of the machine: a few at work at once, a few more in line, and none for long.
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

class FewAtOnce {
 public:
  struct Options {
    std::string what;  // for what is said: "choice of a schedule"
    int at_work = 2;
    int in_line = 64;
    absl::Duration longest = absl::InfiniteDuration();  // of the work of one, without the line
  };

  explicit FewAtOnce(Options options) : options_(std::move(options)) {}

  // What `work` returns, once it is its turn. Its stop token is requested when `gone` says that the
  // caller has gone, which is asked ten times a second by another thread, and when it has worked for
  // the longest time. Without work: ResourceExhausted where the line is full, Cancelled where the
  // caller goes while it waits. DeadlineExceeded: the work was stopped for its time.
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
