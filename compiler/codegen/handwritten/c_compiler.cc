#include "compiler/codegen/handwritten/c_compiler.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "compiler/codegen/handwritten/compiler_confinement.h"

namespace kiln::codegen {
namespace {

constexpr size_t kMaxMessageBytes = 64 << 10;

constexpr std::string_view kFeatures[] = {"sse4.2", "popcnt",   "avx2",     "bmi2",
                                          "fma",    "avx512bw", "avx512dq", "avx512vl"};
// Number of features, in the order of kFeatures, that each level needs.
constexpr std::array<std::pair<size_t, std::string_view>, 3> kLevels = {
    {{8, "x86-64-v4"}, {5, "x86-64-v3"}, {2, "x86-64-v2"}}};

std::string FindInPath(std::string_view program) {
  const char* const variable = std::getenv("PATH");
  std::string_view path = variable != nullptr && *variable != '\0' ? variable : "/usr/bin:/bin";
  while (true) {
    const size_t end = std::min(path.find(':'), path.size());
    const std::string candidate = fmt::format("{}/{}", path.substr(0, end), program);
    if (end > 0 && access(candidate.c_str(), X_OK) == 0) return candidate;
    if (end == path.size()) return {};
    path.remove_prefix(end + 1);
  }
}

// Returns a compiler's messages with the first error in front, because lists show only the first
// line.
std::string ErrorFirst(const std::string& messages) {
  const size_t error = messages.find("error:");
  if (error == std::string::npos) return messages;
  const size_t before = messages.rfind('\n', error);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return begin == 0 ? messages : messages.substr(begin) + messages.substr(0, begin);
}

// Environment of the compiler: messages are in English for every user, temporary files are in
// `scratch`, and the variables that find programs and libraries are kept. A cache of compilations
// would write elsewhere, so it is off.
std::vector<std::string> Environment(const std::string& scratch) {
  std::vector<std::string> environment = {"LC_ALL=C", "TMPDIR=" + scratch, "CCACHE_DISABLE=1"};
  for (const char* const name : {"PATH", "LD_LIBRARY_PATH"}) {
    if (const char* const value = std::getenv(name); value != nullptr) {
      environment.push_back(fmt::format("{}={}", name, value));
    }
  }
  return environment;
}

}  // namespace

std::span<const std::string_view> X86LevelFeatures() { return kFeatures; }

std::string X86Level(const std::vector<std::string>& features) {
  for (const auto& [needed, level] : kLevels) {
    const bool has_all =
        std::ranges::all_of(std::span(kFeatures).first(needed), [&](std::string_view feature) {
          return std::ranges::find(features, feature) != features.end();
        });
    if (has_all) return std::string(level);
  }
  return "x86-64";
}

StatusOr<CCompiler> CCompiler::Find() {
  if (const char* const named = std::getenv("KILN_CC"); named != nullptr && *named != '\0') {
    if (access(named, X_OK) == 0) return CCompiler(named);
    return Unimplemented("KILN_CC names {}, which is not a program that can be run", named);
  }
  for (const char* const program : {"cc", "gcc", "clang"}) {
    std::string path = FindInPath(program);
    if (!path.empty()) return CCompiler(std::move(path));
  }
  return Unimplemented(
      "kernels in C need a C compiler where they are built, and there is no cc, gcc or clang in "
      "PATH: "
      "install one (on Debian: apt-get install gcc libc6-dev), or let KILN_CC name one");
}

StatusOr<std::string> CCompiler::CompileSharedObject(std::string_view source,
                                                     std::string_view march,
                                                     std::span<const std::string> options) const {
  KILN_ASSIGN_OR_RETURN(const TempDir folder, TempDir::Make("kiln-c-kernel"));
  const std::string input = JoinPath(folder.path(), "kernel.c"),
                    output = JoinPath(folder.path(), "kernel.so");
  KILN_RETURN_IF_ERROR(WriteFile(input, source));
  SubprocessOptions process;
  process.argv = {path_, "-O3", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden"};
  if (!march.empty()) process.argv.push_back(fmt::format("-march={}", march));
  process.argv.insert(process.argv.end(), options.begin(), options.end());
  process.argv.insert(process.argv.end(), {input, "-o", output, "-lm"});
  process.error = SubprocessOptions::Stream::kPipe;
  process.env = Environment(folder.path());
  process.clear_env = true;
  const FileAccess access = CCompilerAccess(path_, folder.path());
  process.confine = [&] { return ConfineCCompiler(access); };
  // The compiler and the processes that it starts are ended together with its caller.
  process.own_process_group = false;
  process.limits = CCompilerLimits();
  KILN_ASSIGN_OR_RETURN(const RunResult result,
                        RunToEnd(process, {}, absl::InfiniteDuration(), kMaxMessageBytes));
  if (!result.exit.ok()) {
    if (result.error.empty()) return InvalidArgument("{}: {}", path_, result.exit.ToString());
    return InvalidArgument("{}{}", ErrorFirst(result.error), WhyRefused(result.error));
  }
  return ReadFile(output);
}

}  // namespace kiln::codegen
