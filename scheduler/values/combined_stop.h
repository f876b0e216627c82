// A stop token that fires when either of two does.
#pragma once

#include <functional>
#include <stop_token>
#include <utility>

namespace kiln::scheduler {

class CombinedStop {
 public:
  CombinedStop(std::stop_token one, std::stop_token other)
      : on_one_(std::move(one), [this] { either_.request_stop(); }),
        on_other_(std::move(other), [this] { either_.request_stop(); }) {}
  CombinedStop(const CombinedStop&) = delete;
  CombinedStop& operator=(const CombinedStop&) = delete;

  // The token is valid as long as this object.
  std::stop_token token() const { return either_.get_token(); }

 private:
  std::stop_source either_;
  std::stop_callback<std::function<void()>> on_one_, on_other_;  // last: they use either_
};

}  // namespace kiln::scheduler
