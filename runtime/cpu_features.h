// Features of this machine's processor, by LLVM's names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::runtime {

// Returns for instance "x86_64" or "aarch64".
std::string_view HostArch();

// Returns whether this processor has the feature. False for names that are not in KnownCpuFeatures.
bool HasCpuFeature(std::string_view name);

// Returns the features that change the code which a compiler makes from loops over numbers. A
// compiler for a CPU lists the features of its target that are among these. Empty on processor
// families without a table.
std::span<const std::string_view> KnownCpuFeatures();

// Returns the names in `needed` that this processor lacks, in their order.
std::vector<std::string> MissingCpuFeatures(std::span<const std::string> needed);

// Returns "Intel(R) Xeon(R) Platinum 8488C"; "this CPU" if the system does not say.
std::string HostCpuName();

}  // namespace kiln::runtime
