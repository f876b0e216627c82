// Keeps how much of the devices each user has had, and says who is next.
//
// Two numbers of a user:
//
//   device seconds   Slots of runners that his jobs held, over all time, decayed (decayed_use.h).
//   use              His place in the queue, which the tracker is told (AcquireRequest.use): the
//                    user with the smallest number is next. While a user competes, the number grows
//                    by a second for each second of a device, divided by his weight, so devices
//                    are shared as the weights say. These are the virtual times of weighted fair
//                    queueing, or the passes of stride scheduling (Waldspurger and Weihl, "Stride
//                    Scheduling: Deterministic Proportional-Share Resource Management", MIT 1995).
//
// A user competes while his jobs hold or ask for a device. When he begins to compete, his place is
// set against the user in service with the smallest use: ahead of him by as much as his device
// seconds, divided by the weight, are fewer, but by `head_start_s` at most, and behind him
// likewise. So the use of the last days counts, and yet nobody waits for longer than the head start
// of others: from then on the weights alone count. A user who was away for less than `pause_s`
// keeps his place.
//
// Limits: FairShares also counts devices, so that a user has no more of them than he may have.
//
// The numbers are in the database: a thread writes those that have changed every `write_every`, and
// the destructor writes them a last time. A process that dies loses that time at most.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "scheduler/fair_share/decayed_use.h"
#include "store/store.h"

namespace kiln::scheduler {

class FairShares {
 public:
  struct Options {
    double half_life_s = 7 * 24 * 3600;
    // Device seconds, divided by the weight.
    double head_start_s = 300;
    double pause_s = 60;
    std::chrono::milliseconds write_every{2'000};
  };

  // Store and clock outlive this object.
  FairShares(store::Store& store, const Options& options, Clock& clock = Clock::Real());
  ~FairShares();

  // Reads what the database knows, and begins to write. Call once, before anything else.
  Status Start();

  // ---- devices: called by the leases of jobs (shared_leases.h)
  // The user asks for a device, or ends to ask.
  void BeginAsking(const std::string& user);
  void EndAsking(const std::string& user);
  // Waits until the user may have one more device, and reserves it. False: `stop` was requested, or
  // `until` has come. Users who wait get their turn in order.
  bool Reserve(const std::string& user, std::chrono::steady_clock::time_point until,
               const std::stop_token& stop);
  void EndReservation(const std::string& user);
  // Turns a reservation into a device in use.
  void BeginDevice(const std::string& user);
  void EndDevice(const std::string& user);

  // The user's place in the queue. Finite.
  double Use(const std::string& user);
  // Says why the user gets no further device; "" = he may have more.
  std::string WhyNoDevice(const std::string& user) const;

  // ---- users
  struct User {
    std::string name;
    store::UserLimits limits;
    double device_s = 0;
    int devices = 0;
  };
  // Returns all users who have limits or have used a device, ordered by name.
  std::vector<User> Users();
  store::UserLimits LimitsOf(const std::string& user) const;
  // Keeps the limits in the database, then goes by them. Devices in use are not taken back.
  Status SetLimits(const std::string& user, const store::UserLimits& limits);

  // Writes the numbers that have changed.
  Status Write();

 private:
  struct Account {
    explicit Account(double half_life_s) : history(half_life_s) {}

    store::UserLimits limits;
    DecayedUse history;
    double use = 0;
    // Time at which `use` was right.
    double use_at_s = 0;
    // None: the user competes; otherwise when he ended.
    std::optional<double> left_at_s = 0;
    // Whether `use` may be kept when the user comes back in time.
    bool has_place = false;
    int devices = 0, reserved = 0, asking = 0;
    bool changed = false;
    bool competes() const { return devices + asking > 0; }
    double Score() const { return history.device_s() / limits.weight; }
  };

  // All with the lock held.
  Account& Get(const std::string& user);
  double NowSeconds() const;
  void Advance(Account& account);
  void AdvanceAll();
  // Changes a count of the account, and its place if it begins or ends to compete.
  void Change(const std::string& user, const std::function<void(Account&)>& change);
  // The smallest use of the others in service, or, if nobody is in service, of those who ask.
  const Account* Ahead(const Account& account) const;
  // Tells whether the account's place still counts when it competes again.
  bool LeftJustNow(const Account& account) const;
  void Place(Account& account);
  bool MayReserve(const Account& account) const;

  void WriteNowAndThen(const std::stop_token& stop);

  store::Store& store_;
  const Options options_;
  Clock& clock_;
  const double start_s_;

  mutable std::mutex mutex_;
  std::mutex write_mutex_;  // before mutex_: keeps writes in order
  std::condition_variable_any changed_;
  std::map<std::string, Account> accounts_;
  // Users of those who wait for a reservation, in order.
  std::list<std::string> waiting_;
  std::jthread writer_;  // last: it uses the other members
};

}  // namespace kiln::scheduler
