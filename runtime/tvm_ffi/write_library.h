// Writes a compiled network as a shared library for apache-tvm-ffi (library.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/file/file.h"
#include "base/status.h"

namespace kiln::runtime {

// Appends the bytes of a compiled network (AppendNetwork) to a file.
using NetworkAppender = std::function<Status(AtomicFile& file)>;

// The library without a network, an ELF file, as it was compiled with this program.
std::string_view TvmFfiTemplate();

// Writes the library, or leaves the old file as it was: the template, and a segment with the bytes
// that `append` appends. Returns its size in bytes. InvalidArgument if the template is no shared
// library with one EmbeddedNetwork.
StatusOr<int64_t> WriteTvmFfiLibrary(const std::string& path, const NetworkAppender& append,
                                     std::string_view elf = TvmFfiTemplate());

}  // namespace kiln::runtime
