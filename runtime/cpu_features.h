// What the processor of this machine can do, by LLVM's names of features.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::runtime {

// "x86_64", "aarch64".
std::string_view HostArch();

// Whether this processor has it. False of names that are not in KnownCpuFeatures.
bool HasCpuFeature(std::string_view name);

// Those that change which code a compiler makes of loops over numbers: who compiles for a CPU lists
// those of its target that are among these. Empty on families without a table.
std::span<const std::string_view> KnownCpuFeatures();

// Those of `needed` that this processor has not, in their order.
std::vector<std::string> MissingCpuFeatures(std::span<const std::string> needed);

// "Intel(R) Xeon(R) Platinum 8488C"; "this CPU" where the system does not say.
std::string HostCpuName();

}  // namespace kiln::runtime
