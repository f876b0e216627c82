// Who may do what of those that run or compile strangers' code, as a table: what is refused, by what
// means, and whether that holds on this machine. docs/runner.md has it for people; runners and
// builders say at their start which lines do not hold, `kiln doctor` prints all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// What the means are.
struct ContainmentFacts {
  bool filters_calls = false;    // base/system_call_filter.h
  bool restricts_files = false;  // base/file_access.h
  bool is_root = false;
  bool has_nobody = false;       // a user to run programs as, beside root
  bool drops_privileges = true;  // as the runner was told
};
ContainmentFacts ContainmentFactsHere();

enum class Contained { kCpuProgram, kCCompiler, kNvrtc, kGpuProgram, kAll };

struct ContainmentLine {
  Contained who;
  std::string_view what;  // "opens files once it is loaded"
  std::string_view may;   // "none"
  std::string_view means;
  std::string_view why_not;  // why it does not hold here; "": it does
};
std::string_view NameOf(Contained who);  // "CPU program"

// The same for all users.
std::vector<ContainmentLine> ContainmentTable(const ContainmentFacts& facts);

// The lines of `who` that do not hold: "a CPU program opens files while it is loaded: this kernel has
// no Landlock; ..."; "": all hold.
std::string LinesNotHeld(const ContainmentFacts& facts, const std::vector<Contained>& who);

}  // namespace kiln
