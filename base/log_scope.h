// The ids of what a thread works for. Each line that the thread logs in JSON carries them
// (base/log_format.h); lines of text do not.
//
//   const LogScope scope({.job = "3f2a", .trial = "3f2a/17"});
//
// A scope belongs to the thread that made it, and scopes end in the reverse order of their begins.
// Cost: nothing is copied.
#pragma once

#include <string_view>

namespace kiln {

// The views outlive the scope; "" = not known.
struct LogIds {
  std::string_view job = {};
  // "JOB/NUMBER".
  std::string_view trial = {};
  std::string_view trace_id = {};
};

class LogScope {
 public:
  // The ids replace those of the scope around it.
  explicit LogScope(const LogIds& ids);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

  // Returns the ids of the calling thread.
  static const LogIds& Current();

 private:
  const LogIds outer_;
};

}  // namespace kiln
