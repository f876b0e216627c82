// An object that builds requests: the pool of children, or the cache in front of it.
#pragma once

#include <functional>

#include "base/status.h"
#include "builder/build.h"

namespace kiln::builder {

class BuildExecutor {
 public:
  virtual ~BuildExecutor() = default;

  // Builds like Build of build.h, but a compiler that crashes or hangs is an OK outcome too.
  // Thread-safe. The calling thread asks `cancelled` about 20 times a second. Further errors:
  //   Cancelled           `cancelled` returned true
  //   ResourceExhausted   too many calls wait
  //   Unavailable         no child can be started
  virtual StatusOr<BuildOutcome> Build(const v1::BuildRequest& request,
                                       const std::function<bool()>& cancelled) = 0;
};

}  // namespace kiln::builder
