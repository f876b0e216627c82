#include "runtime/cpu_features.h"

#include <algorithm>
#include <fstream>

namespace kiln::runtime {
namespace {

struct Feature {
  std::string_view name;
  bool (*has)();
};

#if defined(__x86_64__)
// The compiler's own table also knows whether the system saves the registers.
#define KILN_FEATURE(name) {name, [] { return __builtin_cpu_supports(name) != 0; }}
constexpr Feature kFeatures[] = {
    KILN_FEATURE("sse3"),       KILN_FEATURE("ssse3"),        KILN_FEATURE("sse4.1"),
    KILN_FEATURE("sse4.2"),     KILN_FEATURE("popcnt"),       KILN_FEATURE("avx"),
    KILN_FEATURE("avx2"),       KILN_FEATURE("fma"),          KILN_FEATURE("f16c"),
    KILN_FEATURE("bmi"),        KILN_FEATURE("bmi2"),         KILN_FEATURE("lzcnt"),
    KILN_FEATURE("movbe"),      KILN_FEATURE("avx512f"),      KILN_FEATURE("avx512bw"),
    KILN_FEATURE("avx512cd"),   KILN_FEATURE("avx512dq"),     KILN_FEATURE("avx512vl"),
    KILN_FEATURE("avx512vbmi"), KILN_FEATURE("avx512ifma"),   KILN_FEATURE("avx512vbmi2"),
    KILN_FEATURE("avx512vnni"), KILN_FEATURE("avx512bitalg"), KILN_FEATURE("avx512vpopcntdq"),
    KILN_FEATURE("avx512bf16"), KILN_FEATURE("avx512fp16"),   KILN_FEATURE("avxvnni"),
    KILN_FEATURE("gfni"),       KILN_FEATURE("vaes"),         KILN_FEATURE("vpclmulqdq"),
    KILN_FEATURE("amx-tile"),   KILN_FEATURE("amx-int8"),     KILN_FEATURE("amx-bf16"),
};
#undef KILN_FEATURE
#else
// Every 64-bit ARM processor has the features that are not listed.
constexpr Feature kFeatures[] = {{"neon", [] { return true; }}};
#endif

}  // namespace

std::string_view HostArch() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

bool HasCpuFeature(std::string_view name) {
  return std::any_of(std::begin(kFeatures), std::end(kFeatures),
                     [&](const Feature& feature) { return feature.name == name && feature.has(); });
}

std::span<const std::string_view> KnownCpuFeatures() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (const Feature& feature : kFeatures) list.push_back(feature.name);
    return list;
  }();
  return names;
}

std::vector<std::string> MissingCpuFeatures(std::span<const std::string> needed) {
  std::vector<std::string> missing;
  for (const std::string& name : needed) {
    if (!HasCpuFeature(name)) missing.push_back(name);
  }
  return missing;
}

std::string HostCpuName() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "this CPU";
}

}  // namespace kiln::runtime
