// Arrays in numpy's .npy files (format 1.0 to 3.0: numpy.lib.format).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::client {

struct NpyArray {
  // As Kiln calls it, "float32". A file may hold the bits of a type that numpy lacks: then it is that
  // of NpyDtype, unless the ml_dtypes package wrote the file, whose types are known as they are.
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;  // row-major, little-endian
};

// Refuses what is no .npy file, types that Kiln does not have, big-endian numbers, Fortran order,
// and data of another length than the header says. Errors begin with the path.
StatusOr<NpyArray> ReadNpy(const std::string& path);

// What the elements of a file are said to be: of a type that numpy has not, unsigned integers, its
// bits. uint16 of bfloat16, uint8 of the 8-bit floats, and every other type itself.
std::string_view NpyDtype(std::string_view dtype);

// Refuses types that Kiln does not have.
Status WriteNpy(const std::string& path, const NpyArray& array);

}  // namespace kiln::client
