// Writes a compiled network as a shared library for apache-tvm-ffi (library.cc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::runtime {

// The library without a network, an ELF file, as it was compiled with this program.
std::string_view TvmFfiTemplate();

// Writes the library, or leaves the old file as it was: the template, and a segment with the bytes
// of the file `network_path`, which are copied in pieces. Returns its size in bytes.
// InvalidArgument if the template is no shared library with one EmbeddedNetwork.
StatusOr<int64_t> WriteTvmFfiLibrary(const std::string& path, const std::string& network_path,
                                     std::string_view elf = TvmFfiTemplate());

}  // namespace kiln::runtime
