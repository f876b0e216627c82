#include "base/process/containment_table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/file/file.h"
#include "base/process/file_access.h"
#include "base/process/namespaces.h"
#include "base/process/system_call_filter.h"

namespace kiln {
namespace {

constexpr std::string_view kNoFilter = "this kernel has no seccomp";
constexpr std::string_view kNoFiles = "this kernel has no Landlock";

}  // namespace

ContainmentFacts ContainmentFactsHere() {
  return {.filters_calls = SystemCallFilter::Works(),
          .restricts_files = CanRestrictFiles(),
          .is_root = geteuid() == 0,
          .is_root_outside = geteuid() == 0 && IsRootOutside(),
          .has_nobody = CanBecomeNobody(),
          .namespaces = std::string(Message(TryNamespaces()))};
}

std::string_view NameOf(Contained who) {
  switch (who) {
    case Contained::kCpuProgram:
      return "CPU program";
    case Contained::kCCompiler:
      return "C compiler";
    case Contained::kNvrtc:
      return "NVRTC";
    case Contained::kGpuProgram:
      return "GPU program";
    default:
      return "any child";
  }
}

std::vector<ContainmentLine> ContainmentTable(const ContainmentFacts& facts) {
  const std::string filter(facts.filters_calls ? "" : kNoFilter);
  const std::string files(facts.restricts_files ? "" : kNoFiles);
  std::string user;
  if (facts.is_root && !facts.drops_privileges)
    user = "programs run as root, because --no-drop-privileges is given";
  // In namespaces root is another user inside, which helps if it is no root outside.
  const bool inside_helps = facts.namespaces.empty() && !facts.is_root_outside;
  if (facts.is_root && facts.drops_privileges && !facts.has_nobody && !inside_helps) {
    user = "there is no user but root to run programs as";
  }
  using enum Contained;
  return {
      {kCpuProgram, "reads memory, descriptors, variables of others", "none",
       "hidden processes (not dumpable), seccomp", filter},
      {kCpuProgram, "reads what it is compared with", "never",
       "a descriptor that it has not got, memory that no fork has", ""},
      {kCpuProgram, "opens files while it is loaded", "the system's libraries", "Landlock", files},
      {kCpuProgram, "opens files once it is loaded", "none", "a limit of 0 descriptors", ""},
      {kCpuProgram, "writes files", "its own output, 16 MiB", "seccomp, a limit", filter},
      {kCpuProgram, "connects, listens", "nowhere", "seccomp", filter},
      {kCpuProgram, "starts processes, threads, programs", "none", "seccomp, a limit", filter},
      {kCpuProgram, "signals", "itself, not to stop", "seccomp", filter},
      {kCpuProgram, "is root", "never", "user 65534 instead, no capabilities", user},
      {kCpuProgram, "sees processes and files", "its own, the system's libraries", "namespaces",
       facts.namespaces},
      {kCCompiler, "reads files", "its toolchain and includes", "Landlock", files},
      {kCCompiler, "writes files", "its scratch folder, 256 MiB each", "Landlock, a limit", files},
      {kCCompiler, "connects, traces, signals", "nothing", "seccomp", filter},
      {kCCompiler, "sees processes and networks", "its own", "namespaces", facts.namespaces},
      {kCCompiler, "has options", "words of a list, no path", "the builder", ""},
      {kNvrtc, "reads files", "its toolkit", "Landlock", files},
      {kNvrtc, "writes files", "none", "Landlock", files},
      {kGpuProgram, "calls the system", "never", "it is code for a GPU", ""},
      {kAll, "reads the farm's secret", "never", "not in its memory, variables or descriptors", ""},
      {kAll, "leaves core files", "none", "a limit", ""},
      {kAll, "outlives its daemon", "never", "it is killed with it", ""},
      {kAll, "is ended first when memory is short", "always", "oom_score_adj", ""},
  };
}

std::string BrokenContainmentLines(const ContainmentFacts& facts,
                                   const std::vector<Contained>& who) {
  std::string lines;
  for (const ContainmentLine& line : ContainmentTable(facts)) {
    if (line.why_not.empty() || std::ranges::find(who, line.who) == who.end()) continue;
    lines += fmt::format("{}not limited: a {} {} ({})", lines.empty() ? "" : "; ", NameOf(line.who),
                         line.what, line.why_not);
  }
  return lines;
}

}  // namespace kiln
