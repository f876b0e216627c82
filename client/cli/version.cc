#include "client/cli/version.h"

#include <fmt/format.h>

#include <string_view>

#include "base/version.h"
#include "compiler/codegen/cuda/compile.h"
#include "costmodel/boost.h"
#include "store/sqlite.h"

namespace kiln::client {
namespace {

// The commit is set by --define=kiln_commit=...
constexpr std::string_view kCommit = KILN_COMMIT;

// LLVM's C interface, declared here since only compiler/codegen may include LLVM's header.
extern "C" void LLVMGetVersion(unsigned* major, unsigned* minor, unsigned* patch);

std::string LlvmVersion() {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

std::string NvrtcVersion() {
  const auto nvrtc = codegen::FindNvrtc();
  return nvrtc.ok() ? fmt::format("{}.{}", nvrtc->major, nvrtc->minor) : "not found";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Versions() {
  return {{"version", std::string(kVersion)},  {"protocol", fmt::format("{}", kProtocol)},
          {"commit", std::string(kCommit)},    {"LLVM", LlvmVersion()},
          {"NVRTC", NvrtcVersion()},           {"XGBoost", costmodel::XgboostVersion()},
          {"SQLite", store::sqlite::Version()}};
}

std::string VersionText() {
  std::string text = fmt::format("kiln {}", kVersion);
  if (!kCommit.empty()) text += fmt::format(" ({})", kCommit);
  for (const auto& [name, version] : Versions()) {
    if (name != "version" && name != "protocol" && name != "commit")
      text += fmt::format(", {} {}", name, version);
  }
  return text;
}

}  // namespace kiln::client
