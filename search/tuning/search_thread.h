// A thread in which policies learn and search. The thread has one order at a time. Several threads
// may have orders for the same policies: each policy is told and asked under its own lock.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "device/exclusive_phases.h"
#include "search/policies/policy.h"
#include "search/tuning/search_turns.h"

namespace kiln::search {

// A policy, which one thread at a time uses. Outlives the threads.
struct SearchedPolicy {
  Policy* policy = nullptr;
  std::mutex mutex = {};
};

class SearchThread {
 public:
  struct Order {
    std::vector<std::pair<SearchedPolicy*, std::vector<Observation>>> events;  // told first
    // Null: no candidates are asked for.
    SearchedPolicy* policy = nullptr;
    std::vector<Observation> suggestions = {};  // told before the policy is asked
    int candidates = 0;
  };
  struct Answer {
    StatusOr<std::vector<Candidate>> candidates;
    RoundReport report;
    double search_s = 0;
    // Wait for a turn, before the search.
    double waited_s = 0;
  };

  // Calls `done` in the thread when an answer is there. Orders are work that enters `phases`; if
  // that is null, they are carried out at once. Each order takes one of `turns`; null: there is no
  // limit.
  explicit SearchThread(std::function<void()> done, ExclusivePhases* phases = nullptr,
                        SearchTurns* turns = nullptr);
  // Waits for the order in hand, unless that still waits for its turn.
  ~SearchThread();

  // These belong to one thread:
  void Start(Order order);             // not while busy
  bool busy() const { return busy_; }  // from Start until the answer is taken
  std::optional<Answer> Take();

 private:
  void Run();
  Answer Carry(Order& order) const;

  const std::function<void()> done_;
  ExclusivePhases* const phases_;
  SearchTurns* const turns_;
  bool busy_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Order> order_;
  std::optional<Answer> answer_;
  bool stopping_ = false;
  std::stop_source stop_;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace kiln::search
