// Arrays in numpy's .npy files (format 1.0 to 3.0: numpy.lib.format).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::client {

struct NpyArray {
  std::string dtype;  // as Kiln calls it: "float32"
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;  // row-major, little-endian
};

// Refuses what is no .npy file, types that Kiln does not have, big-endian numbers, Fortran order,
// and data of another length than the header says. Errors begin with the path.
StatusOr<NpyArray> ReadNpy(const std::string& path);

// Refuses bfloat16, which numpy has no type for.
Status WriteNpy(const std::string& path, const NpyArray& array);

}  // namespace kiln::client
