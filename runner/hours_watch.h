// Pauses a worker outside of its hours: sets the condition "hours" of its modes, PAUSED, and clears
// it again. A trial in hand is stopped at the end of a window, as with any pause.
//
// One thread looks at the wall clock at each change of the hours, and once a minute, because that
// clock may be set. Owner: the worker.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "rpc/worker_modes.h"
#include "runner/hours.h"

namespace kiln::runner {

// Returns "outside of its hours mon-fri 20:00-06:00 (Europe/Berlin), until Mon 20:00"; without the
// zone if that is the machine's own.
std::string OutsideSentence(const Hours& hours, absl::Time now);

class HoursWatch {
 public:
  // The mode is right when the constructor returns. `modes` and `clock` outlive the object.
  HoursWatch(Hours hours, WorkerModes& modes, Clock& clock);
  ~HoursWatch();
  HoursWatch(const HoursWatch&) = delete;
  HoursWatch& operator=(const HoursWatch&) = delete;

 private:
  void Run();
  void SetMode();
  // Returns the time until the next look.
  absl::Duration Pause();

  const Hours hours_;
  WorkerModes& modes_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kiln::runner
