// One bit that a runner's daemon shows its children: whether another trial waits for the device. In
// shared memory, so that a child may look between two readings. Children cannot write it.
//
// Thread-safe. Cost: a load or a store.
#pragma once

#include <memory>

#include "base/fd.h"
#include "base/status.h"

namespace kiln::runner {

class WantedFlag {
 public:
  // The daemon's end, not set.
  static StatusOr<std::unique_ptr<WantedFlag>> Make();
  // A child's end, of the daemon's descriptor.
  static StatusOr<std::unique_ptr<WantedFlag>> Open(UniqueFd fd);
  ~WantedFlag();
  WantedFlag(const WantedFlag&) = delete;
  WantedFlag& operator=(const WantedFlag&) = delete;

  int fd() const { return fd_.get(); }
  void Set(bool wanted);  // the daemon only
  bool wanted() const;

 private:
  WantedFlag(UniqueFd fd, void* page) : fd_(std::move(fd)), page_(page) {}
  static StatusOr<std::unique_ptr<WantedFlag>> Map(UniqueFd fd, int protection);

  const UniqueFd fd_;
  void* const page_;
};

}  // namespace kiln::runner
