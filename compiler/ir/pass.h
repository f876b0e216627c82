// Passes by name. Each pass can be timed, shown, followed by a verification, and left out.
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
#include "base/process/cpu_time.h"
#include "base/status.h"
#include "compiler/ir/program.h"

namespace kiln::ir {

// The outcome of one pass.
struct PassReport {
  std::string_view name;
  // CPU time of the thread.
  double seconds = 0;
  bool left_out = false;
  // True if the program's text changed.
  bool changed = false;
  // The program after the pass. Null for a pass that runs before there is a program.
  const Program* program = nullptr;
  // The text of the program before the pass.
  std::string_view before = {};
};

// With instruments the program is verified after each pass. The error names the pass.
struct PassInstruments {
  // Names of passes that are not run; the observer still gets a report of each. Without a pass the
  // program may be slower, or later passes or the generator may refuse it.
  std::set<std::string, std::less<>> leave_out = {};
  // Called after each pass, on the thread that lowers. Without an observer passes are not timed,
  // and programs are not printed to find out what changed.
  std::function<void(const PassReport&)> observer = {};
};

// Returns the instruments that KILN_DEBUG (base/log.h) asks for: verify=1 verifies after each pass,
// passes=1 also logs the time of each pass, passes=2 also logs the program after a pass that
// changed it. Null: KILN_DEBUG asks for none. The environment is read once; any thread may call.
const PassInstruments* InstrumentsOfEnvironment();

// Runs one sequence of passes, on one thread.
class PassRunner {
 public:
  // Null: the instruments of the environment. The instruments must outlive the runner.
  explicit PassRunner(const PassInstruments* instruments)
      : instruments_(instruments != nullptr ? instruments : InstrumentsOfEnvironment()) {}

  // Returns Internal if ir::Verify refuses the program after the pass.
  Status Run(std::string_view name, Program& program, absl::FunctionRef<void(Program&)> pass) {
    if (instruments_ == nullptr) {
      pass(program);
      return OkStatus();
    }
    return RunInstrumented(name, program, pass);
  }

  // Runs a pass that comes before there is a program. It is timed and never left out.
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
