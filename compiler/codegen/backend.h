// The interface of code generation for users that build for any kind of target: one object for each
// kind, in a table (backends.h).
//
// Objects have no state and live as long as the program. Threads, cost and the effects of a
// compiler on its process are those in the header of the generator behind the object.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/compiled.h"
#include "compiler/ir/pass.h"
#include "compiler/ir/program.h"
#include "compiler/target/target.h"

namespace kiln::codegen {

// A text that shows the code of a program.
struct CodeForm {
  // Name for `kiln show --as`: "cuda".
  std::string_view name;
  // Name for people: "CUDA C".
  std::string_view title;
};

// Wall seconds. 0 if the generator cannot tell them apart.
struct CompileTimes {
  double generate_s = 0, compile_s = 0;
};

// A program before a compiler has seen it, for a compiler of somebody else.
struct GeneratedSource {
  // CUDA C, or LLVM IR before the optimizer. The text is complete: its compiler needs no other
  // file.
  std::string text;
  // The interface of the compiled program. It has no binary, and no figures that a compiler
  // reports.
  Compiled interface;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const target::TargetKind& kind() const = 0;

  // Returns the compiler that is found here, for people: "NVRTC 12.4 (/usr/...)". The error says
  // why there is none.
  virtual StatusOr<std::string> Compiler() const = 0;

  // Returns the target with the options filled in that it leaves to this machine, such as the
  // processor's name. Refuses options that the compiler does not know.
  virtual StatusOr<target::Target> Resolve(const target::Target& target) const { return target; }

  // Returns those of the given processor features that code for the target may use. A processor
  // must have them to run the code.
  virtual StatusOr<std::vector<std::string>> FeaturesUsed(
      const target::Target& /*target*/, std::span<const std::string_view> /*features*/) const {
    return std::vector<std::string>();
  }

  // InvalidArgument: a device with this hardware refuses to run the program. The check comes before
  // anything is generated.
  virtual Status Check(const ir::Program& program, const target::Target& target,
                       const target::HardwareParams& hardware) const;

  // `target` must be resolved. Faults are for tests of the handling of broken programs. Kinds that
  // run no programs are never asked for a fault.
  virtual StatusOr<Compiled> Compile(const ir::Program& program, const target::Target& target,
                                     const CompileOptions& options, CompileTimes& times) const = 0;

  // Generates what Compile compiles, and compiles nothing. `times` gets the time of generation.
  virtual StatusOr<GeneratedSource> Generate(const ir::Program& program,
                                             const target::Target& target,
                                             const CompileOptions& options,
                                             CompileTimes& times) const;

  // The first form is the one that most people mean.
  virtual std::span<const CodeForm> forms() const { return {}; }
  // `form` is the name of one of the forms. Works without a compiler as far as possible.
  virtual StatusOr<std::string> Show(std::string_view form, const ir::Program& program,
                                     const target::Target& target,
                                     const ir::PassInstruments* instruments) const;
  // Runs only the generator's own passes, for users that watch them.
  virtual Status RunPasses(const ir::Program& program,
                           const ir::PassInstruments* instruments) const;
};

// A table of backends: AllBackends (backends.h), or another one in tests.
using Backends = std::span<const Backend* const>;

}  // namespace kiln::codegen
