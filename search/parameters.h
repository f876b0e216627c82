// Search parameters by name (facts §3.1), with the defaults that this code uses.
#pragma once

#include <map>
#include <string>

#include "base/status.h"

namespace kiln::search {

struct Parameters {
  // Tile letters from outermost to innermost: S splits every spatial axis, R every reduction axis.
  std::string cpu_tiling = "SSRSRS";
  std::string gpu_tiling = "SSSRRSRS";  // blocks, vthreads, threads, ...
  int max_innermost_split_factor = 64;
  // Lanes of one vectorized loop. The predecessor's default is 16; several vectors per row make
  // better register tiles.
  int max_vectorize_size = 64;
  bool change_compute_location = true;
  // GPU kernels that are not tiled (pooling, elementwise) and reductions across threads: a warp per
  // block, as the predecessor begins with, or 1 to 32 warps by chance.
  bool vary_thread_counts = true;
  // How many samples in a row may be refused or already known before a policy says the space is
  // exhausted.
  int max_futile_samples = 2000;
};

// "max_vectorize_size" -> 32, ... Unknown names: error with the list of known ones.
StatusOr<Parameters> MakeParameters(const std::map<std::string, double>& overrides);

}  // namespace kiln::search
