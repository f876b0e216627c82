// Lets a few searches work at once; the others wait, in the order in which they came.
//
// A round of a search holds the feature rows of some thousand schedules, about ten megabytes, and
// has work for every core. Rounds beyond the number of cores share the cores with the others: on
// average all of them end as late as if they had waited, but all of them hold memory meanwhile.
//
// Thread-safe; outlives its Turns. A thread that has a Turn must not Take another one.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <stop_token>
#include <utility>

namespace kiln::search {

class SearchTurns {
 public:
  // The search works until the turn is destroyed. An empty turn is none.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&& other) noexcept {
      std::swap(turns_, other.turns_);
      return *this;
    }
    ~Turn() {
      if (turns_ != nullptr) turns_->Leave();
    }
    explicit operator bool() const { return turns_ != nullptr; }

   private:
    friend class SearchTurns;
    explicit Turn(SearchTurns* turns) : turns_(turns) {}
    SearchTurns* turns_ = nullptr;
  };

  // So many searches work at once, at least one.
  explicit SearchTurns(int at_once);

  // Waits for a turn. Returns an empty one if `stop` is requested before.
  Turn Take(const std::stop_token& stop = {});

  // Returns the number of searches that wait.
  int waiting() const;

 private:
  struct Waiter {
    std::condition_variable called = {};
    bool has_turn = false;
  };

  void Leave();
  // Gives the turn to the first who waits, or keeps it for who comes next. The mutex is held.
  void HandOn();

  mutable std::mutex mutex_;
  int free_;
  std::list<Waiter*> waiting_;  // the first came first
};

}  // namespace kiln::search
