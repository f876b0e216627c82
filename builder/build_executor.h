// Something that builds requests: the pool of children, or the cache in front of it.
#pragma once

#include <functional>

#include "base/status.h"
#include "builder/build.h"

namespace kiln::builder {

class BuildExecutor {
 public:
  virtual ~BuildExecutor() = default;

  // As Build of build.h, and a compiler that crashes or hangs is an OK outcome too. Thread-safe.
  // `cancelled` is asked about 20 times a second by the calling thread. Further errors:
  //   Cancelled           `cancelled` said so
  //   ResourceExhausted   too many calls wait
  //   Unavailable         no child can be started
  virtual StatusOr<BuildOutcome> Build(const v1::BuildRequest& request,
                                       const std::function<bool()>& cancelled) = 0;
};

}  // namespace kiln::builder
