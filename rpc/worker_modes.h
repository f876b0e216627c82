// Whether a worker takes trials, and why not: the mode that an operator asks for, and the worker's
// own conditions, such as the hours of its device. The strictest mode is the worker's mode.
//
// The order, from the mildest: SERVES, CORDONED, DRAINS, QUARANTINED, PAUSED (proto/tracker.proto
// says what each means). A number that this version does not know counts as DRAINS: nothing new is
// given to such a worker, and nothing in hand is lost.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "proto/tracker.pb.h"

namespace kiln {

// Returns the place of the mode in the order; 0 = WORKER_SERVES.
int StrictnessOf(v1::WorkerMode mode);
// Returns whether a tracker grants new leases on a worker of this mode.
bool TakesNewLeases(v1::WorkerMode mode);
// Returns whether holders give leases on a worker of this mode back.
bool GivesLeasesBack(v1::WorkerMode mode);
// Returns whether a worker of this mode sends calls back that come all the same, and stops the
// trials in hand.
bool RefusesTrials(v1::WorkerMode mode);
bool StopsTrials(v1::WorkerMode mode);
// Returns "serves", "cordoned", "drains", "paused" or "quarantined".
std::string_view ModeName(v1::WorkerMode mode);

// A mode, and the sentence about why the worker does not serve, or how it serves: "paused by ada".
struct EffectiveMode {
  v1::WorkerMode mode = v1::WORKER_SERVES;
  std::string sentence = {};

  bool operator==(const EffectiveMode&) const = default;
};

// Returns what an operator's wish means for a worker: "paused by ada".
EffectiveMode AskedMode(v1::WorkerMode mode, std::string_view by);
// Returns the stricter one; the first if both are equally strict.
const EffectiveMode& StricterOf(const EffectiveMode& a, const EffectiveMode& b);

// Belongs to a worker daemon, which has one for each worker. Thread-safe. Cost: a lock and a look
// at each condition.
class WorkerModes {
 public:
  // Ends the subscription when it is destroyed, and waits for a callback that runs. The WorkerModes
  // outlive it.
  class Subscription {
   public:
    Subscription() = default;
    Subscription(WorkerModes* modes, int id) : modes_(modes), id_(id) {}
    Subscription(Subscription&& other) noexcept;
    Subscription& operator=(Subscription&& other) noexcept;
    ~Subscription();

   private:
    WorkerModes* modes_ = nullptr;
    int id_ = 0;
  };

  // Sets a condition of the worker: "hours", PAUSED, "outside of its hours 22:00-06:00". Replaces
  // the condition of the same name.
  void Set(std::string condition, v1::WorkerMode mode, std::string sentence);
  void Clear(std::string_view condition);
  // Notes the mode that an operator asks for, and his name.
  void Ask(v1::WorkerMode mode, std::string by);

  // Returns the strictest mode. Of equally strict ones the operator's goes first, then the
  // condition whose name is the smallest. A condition may say how the worker serves: SERVES, "takes
  // at most 50% of the device's time".
  EffectiveMode Effective() const;
  // Sets the four fields of the state that are about modes.
  void Fill(v1::WorkerState* state) const;

  // Has `changed` called after each change of the effective mode or its sentence, in the thread
  // that changed it. It may look at this object, and changes nothing of it.
  [[nodiscard]] Subscription Subscribe(std::function<void()> changed);

 private:
  // The caller holds the lock.
  const EffectiveMode& Strictest() const;
  // Makes the change, and tells the subscribers if the effective mode is another one.
  void Change(const std::function<void()>& change);
  void Unsubscribe(int id);

  mutable std::mutex mutex_;
  v1::WorkerMode asked_mode_ = v1::WORKER_SERVES;
  std::string asked_by_;
  EffectiveMode asked_;
  std::map<std::string, EffectiveMode, std::less<>> conditions_;

  // Held while callbacks run. Taken before mutex_ or without it.
  std::mutex callbacks_mutex_;
  std::map<int, std::function<void()>> callbacks_;
  int callback_ids_ = 0;
};

}  // namespace kiln
