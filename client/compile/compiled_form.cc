#include "client/compile/compiled_form.h"

#include <fmt/ranges.h>

#include <iterator>

#include "base/file/file.h"
#include "runtime/cpu_features.h"
#include "runtime/tvm_ffi/write_library.h"

namespace kiln::client {
namespace {

// The libraries are of the processor that this program runs on.
Status CheckTvmFfiTarget(const runtime::NetworkTarget& target) {
  if (target.kind == "cuda" || (target.kind == "cpu" && target.arch == runtime::HostArch()))
    return OkStatus();
  return InvalidArgument(
      "a library for apache-tvm-ffi is for CUDA or for a CPU of {}, and the network is for {}",
      runtime::HostArch(), target.text);
}

StatusOr<int64_t> WriteLibrary(const std::string& path, const CompiledNetwork& compiled) {
  KILN_RETURN_IF_ERROR(CheckTvmFfiTarget(compiled.network.target));
  return runtime::WriteTvmFfiLibrary(
      path, [&](AtomicFile& file) { return AppendCompiled(file, compiled); });
}

}  // namespace

StatusOr<CompiledForm> ParseCompiledForm(std::string_view name) {
  for (size_t i = 0; i < std::size(kCompiledForms); ++i) {
    if (name == kCompiledForms[i]) return static_cast<CompiledForm>(i);
  }
  return InvalidArgument("'{}' is no form of a compiled network, expected {}", name,
                         fmt::join(kCompiledForms, " or "));
}

StatusOr<int64_t> WriteCompiledAs(CompiledForm form, const std::string& path,
                                  const CompiledNetwork& compiled) {
  return form == CompiledForm::kTvmFfi ? WriteLibrary(path, compiled)
                                       : WriteCompiled(path, compiled);
}

}  // namespace kiln::client
