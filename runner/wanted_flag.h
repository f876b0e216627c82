// One bit that a runner's daemon shows its children: another trial waits for the device. The bit is
// in shared memory, so that a child can look between two readings. Children cannot write it.
//
// Thread-safe. Cost: a load or a store.
#pragma once

#include <memory>

#include "base/file/fd.h"
#include "base/status.h"

namespace kiln::runner {

class WantedFlag {
 public:
  // Makes the daemon's end; the flag is not set.
  static StatusOr<std::unique_ptr<WantedFlag>> Make();
  // Opens a child's end from the daemon's descriptor.
  static StatusOr<std::unique_ptr<WantedFlag>> Open(UniqueFd fd);
  ~WantedFlag();
  WantedFlag(const WantedFlag&) = delete;
  WantedFlag& operator=(const WantedFlag&) = delete;

  int fd() const { return fd_.get(); }
  // For the daemon only.
  void Set(bool wanted);
  bool wanted() const;

 private:
  WantedFlag(UniqueFd fd, void* page) : fd_(std::move(fd)), page_(page) {}
  static StatusOr<std::unique_ptr<WantedFlag>> Map(UniqueFd fd, int protection);

  const UniqueFd fd_;
  void* const page_;
};

}  // namespace kiln::runner
