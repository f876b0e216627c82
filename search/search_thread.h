// The thread in which policies learn and search: one order at a time.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "search/policy.h"

namespace kiln::search {

class SearchThread {
 public:
  struct Order {
    std::vector<std::pair<Policy*, std::vector<Observation>>> news;  // told first
    Policy* policy = nullptr;                                        // null: nothing is asked for
    int candidates = 0;
  };
  struct Answer {
    StatusOr<std::vector<Candidate>> candidates;
    RoundReport report;
    double search_s = 0;
  };

  // `done` is called in the thread when an answer is there.
  explicit SearchThread(std::function<void()> done);
  // Waits for the order in hand.
  ~SearchThread();

  // Of one thread:
  void Start(Order order);             // not while busy
  bool busy() const { return busy_; }  // from Start until the answer is taken
  std::optional<Answer> Take();

 private:
  void Run();
  static Answer Carry(Order& order);

  const std::function<void()> done_;
  bool busy_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Order> order_;
  std::optional<Answer> answer_;
  bool stopping_ = false;
  std::thread thread_;  // last: uses the rest
};

}  // namespace kiln::search
