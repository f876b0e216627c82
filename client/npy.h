// Reads and writes numpy's .npy files (format 1.0 to 3.0: numpy.lib.format).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::client {

struct NpyArray {
  // Kiln's name of the type, "float32". For a type that numpy lacks, a file may hold the bits as
  // the type of NpyDtype; then that type is given. Types of the ml_dtypes package are recognised.
  std::string dtype;
  std::vector<int64_t> shape;
  // Row-major, little-endian.
  std::vector<std::byte> bytes;
};

// Refuses files that are no .npy, types that Kiln lacks, big-endian numbers, Fortran order, and
// data of another length than the header says. Errors begin with the path.
StatusOr<NpyArray> ReadNpy(const std::string& path);

// Returns the type with which elements are written to a file. For a type that numpy lacks it is the
// unsigned integer of its bits: uint16 for bfloat16, uint8 for the 8-bit floats. Any other type is
// returned unchanged.
std::string_view NpyDtype(std::string_view dtype);

// Refuses types that Kiln lacks.
Status WriteNpy(const std::string& path, const NpyArray& array);

}  // namespace kiln::client
