// A bit by which a runner's daemon asks its children to yield: another trial waits for the device.
// The bit is in shared memory, so that a child can look between two readings. Children cannot write
// it.
//
// Thread-safe. Cost: a load or a store.
#pragma once

#include <memory>

#include "base/file/fd.h"
#include "base/status.h"

namespace kiln::runner {

class YieldFlag {
 public:
  // Makes the daemon's end; the flag is not set.
  static StatusOr<std::unique_ptr<YieldFlag>> Make();
  // Opens a child's end from the daemon's descriptor.
  static StatusOr<std::unique_ptr<YieldFlag>> Open(UniqueFd fd);
  ~YieldFlag();
  YieldFlag(const YieldFlag&) = delete;
  YieldFlag& operator=(const YieldFlag&) = delete;

  int fd() const { return fd_.get(); }
  // For the daemon only.
  void Set(bool wanted);
  bool wanted() const;

 private:
  YieldFlag(UniqueFd fd, void* page) : fd_(std::move(fd)), page_(page) {}
  static StatusOr<std::unique_ptr<YieldFlag>> Map(UniqueFd fd, int protection);

  const UniqueFd fd_;
  void* const page_;
};

}  // namespace kiln::runner
