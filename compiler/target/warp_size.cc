#include "compiler/target/warp_size.h"

#include <string>

namespace kiln::target {

Status CheckWarpSize(const Target& target) {
  constexpr std::string_view kWarpSize = "thread_warp_size", kThreads = "32";
  const std::string size = target.Option(kWarpSize);
  if (target.kind != &kCuda || size.empty() || size == kThreads) return OkStatus();
  return InvalidArgument("target '{}' has -{}={}; the warps of a GPU have {} threads: leave it out",
                         PrintTarget(target), kWarpSize, size, kThreads);
}

}  // namespace kiln::target
