// A table of what programs and compilers that run strangers' code may do: what is refused, by what
// means, and whether that holds on this machine. docs/runner.md shows the table for people. Runners
// and builders list at their start the lines that do not hold; `kiln doctor` prints all lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// The means of containment that this machine has.
struct ContainmentFacts {
  // System calls can be filtered (base/process/system_call_filter.h).
  bool filters_calls = false;
  // Access to files can be restricted (base/process/file_access.h).
  bool restricts_files = false;
  bool is_root = false;
  // Root here is also root outside of its user namespace.
  bool is_root_outside = false;
  // This process is root and can become user 65534, as whom programs run then.
  bool has_nobody = false;
  // Reason why children get no namespaces (base/process/namespaces.h); "": they get them.
  std::string namespaces = {};
  // Set by the runner's flag.
  bool drops_privileges = true;
};
// Tries namespaces, which forks.
ContainmentFacts ContainmentFactsHere();

enum class Contained { kCpuProgram, kCCompiler, kNvrtc, kGpuProgram, kAll };

struct ContainmentLine {
  Contained who;
  // "opens files once it is loaded"
  std::string_view what;
  // "none"
  std::string_view may;
  std::string_view means;
  // Reason why the line does not hold here; "": it holds.
  std::string why_not;
};
// Returns for instance "CPU program".
std::string_view NameOf(Contained who);

// Returns the table; it has the same lines for all users.
std::vector<ContainmentLine> ContainmentTable(const ContainmentFacts& facts);

// Returns the lines of `who` that do not hold, as "a CPU program opens files while it is loaded:
// this kernel has no Landlock; ..."; "": all hold.
std::string BrokenContainmentLines(const ContainmentFacts& facts,
                                   const std::vector<Contained>& who);

}  // namespace kiln
