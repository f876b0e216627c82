// A store for tests whose medium fails for a while. From a given write on, a number of calls are
// refused, each before it has done anything, or (a lost answer) after it has done everything.
#pragma once

#include <mutex>

#include "store/store_decorator.h"

namespace kiln::store {

class FaultyStore : public StoreDecorator {
 public:
  using StoreDecorator::StoreDecorator;

  // Makes the `write`-th write from now on (from 0) fail, and the `calls` - 1 calls of any kind
  // after it.
  void FailAt(int write, int calls, Status error, bool lost_answer = false) {
    std::lock_guard lock(mutex_);
    writes_left_ = write;
    calls_left_ = calls;
    error_ = std::move(error);
    lost_answer_ = lost_answer;
    failed_ = 0;
  }

  // Returns the number of calls that have failed since FailAt.
  int failed() const {
    std::lock_guard lock(mutex_);
    return failed_;
  }
  // Returns the number of all writes.
  int writes() const {
    std::lock_guard lock(mutex_);
    return writes_;
  }

 protected:
  Status Around(Access access, const std::function<Status()>& call) override {
    const bool fails = Fails(access);
    if (fails && !lost_answer_) return error_;
    const Status status = call();
    return fails ? error_ : status;
  }

 private:
  bool Fails(Access access) {
    std::lock_guard lock(mutex_);
    const bool write = access == Access::kWrite;
    writes_ += write;
    const bool away = failed_ > 0 || (write && writes_left_-- == 0);
    if (!away || calls_left_ == 0) return false;
    --calls_left_;
    ++failed_;
    return true;
  }

  mutable std::mutex mutex_;
  int writes_ = 0;
  int writes_left_ = -1;
  int calls_left_ = 0;
  int failed_ = 0;
  Status error_;
  bool lost_answer_ = false;
};

}  // namespace kiln::store
