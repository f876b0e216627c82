// The forms of a compiled network in a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/compile/compiled_network.h"

namespace kiln::client {

enum class CompiledForm : uint8_t {
  // A file of Kiln's (runtime/network_file.h).
  kKiln,
  // A shared library for apache-tvm-ffi (runtime/tvm_ffi/library.cc).
  kTvmFfi,
};
inline constexpr std::string_view kCompiledForms[] = {"kiln", "tvm-ffi"};

// Takes one of kCompiledForms.
StatusOr<CompiledForm> ParseCompiledForm(std::string_view name);

// Writes the network as a file, or leaves the old file as it was. Returns its size in bytes.
// InvalidArgument if the network is for a processor that the form cannot be for.
StatusOr<int64_t> WriteCompiledAs(CompiledForm form, const std::string& path,
                                  const CompiledNetwork& compiled);

}  // namespace kiln::client
