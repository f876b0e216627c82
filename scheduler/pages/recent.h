// Keeps the values of the keys that were asked for last.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace kiln::scheduler {

// Thread-safe; the values have locks of their own where they change. A value that is dropped lives
// as long as somebody holds it.
template <typename Value>
class Recent {
 public:
  explicit Recent(size_t most) : most_(most) {}

  // Returns the value of the key; a new Value() if there is none.
  std::shared_ptr<Value> Get(const std::string& key) {
    const std::lock_guard lock(mutex_);
    if (const auto found = places_.find(key); found != places_.end()) {
      values_.splice(values_.begin(), values_, found->second);
      return values_.front().second;
    }
    values_.emplace_front(key, std::make_shared<Value>());
    places_[key] = values_.begin();
    if (values_.size() > most_) {
      places_.erase(values_.back().first);
      values_.pop_back();
    }
    return values_.front().second;
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  using Values = std::list<std::pair<std::string, std::shared_ptr<Value>>>;

  const size_t most_;
  mutable std::mutex mutex_;
  Values values_;  // the newest first
  std::map<std::string, typename Values::iterator> places_;
};

}  // namespace kiln::scheduler
