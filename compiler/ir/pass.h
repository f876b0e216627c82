// Passes by name: each can be timed, shown, verified after and left out.
//
//   PassRunner passes(instruments);
//   KILN_RETURN_IF_ERROR(passes.Run("auto-unroll", program, AutoUnroll));
//
// Without instruments a runner calls the passes and does nothing else.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "base/cpu_time.h"
#include "base/status.h"
#include "compiler/ir/program.h"

namespace kiln::ir {

// The outcome of one pass.
struct PassReport {
  std::string_view name;
  double seconds = 0;  // CPU time of the thread
  bool left_out = false;
  bool changed = false;              // the program's text
  const Program* program = nullptr;  // after the pass; null: it is what leads to a program
  std::string_view before = {};      // the text of the program before the pass
};

// Where there are instruments the program is verified after each pass; the error names the pass.
struct PassInstruments {
  // Names of passes that are not run; the observer still gets a report of each. Without a pass the
  // program may be slower, or later passes or the generator may refuse it.
  std::set<std::string, std::less<>> leave_out = {};
  // Called after each pass, on the thread that lowers. None: passes are not timed, and programs are
  // not printed to find out what changed.
  std::function<void(const PassReport&)> observer = {};
};

// What KILN_DEBUG (base/log.h) asks for: verify=1 verifies after each pass, passes=1 also logs what
// each took, passes=2 also the program where it changed. Null: nothing. Read from the environment
// once; any thread.
const PassInstruments* InstrumentsOfEnvironment();

// One sequence of passes; one thread.
class PassRunner {
 public:
  // Null: those of the environment. They must outlive the runner.
  explicit PassRunner(const PassInstruments* instruments)
      : instruments_(instruments != nullptr ? instruments : InstrumentsOfEnvironment()) {}

  // Internal when ir::Verify refuses the program after it.
  Status Run(std::string_view name, Program& program, absl::FunctionRef<void(Program&)> pass) {
    if (instruments_ == nullptr) {
      pass(program);
      return OkStatus();
    }
    return RunInstrumented(name, program, pass);
  }

  // What comes before there is a program: timed, never left out.
  template <typename Make>
  auto Time(std::string_view name, Make&& make) {
    if (instruments_ == nullptr || !instruments_->observer) return make();
    const double start = ThreadCpuSeconds();
    auto made = make();
    instruments_->observer({.name = name, .seconds = ThreadCpuSeconds() - start});
    return made;
  }

 private:
  Status RunInstrumented(std::string_view name, Program& program,
                         absl::FunctionRef<void(Program&)> pass);

  const PassInstruments* const instruments_;
};

}  // namespace kiln::ir
