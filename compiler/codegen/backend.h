// What a kind of target needs of code generation, for those who build for any of them: one object
// for each kind, in a table (backends.h).
//
// Objects have no state and live as long as the program. Threads, cost and what a compiler may do
// to its process: as the header of the generator says that the object stands for.
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

// A text that shows what a program becomes.
struct CodeForm {
  std::string_view name;   // as `kiln show --as` takes it: "cuda"
  std::string_view title;  // for people: "CUDA C"
};

// Wall seconds; 0 where the generator cannot tell them apart.
struct CompileTimes {
  double generate_s = 0, compile_s = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const target::TargetKind& kind() const = 0;

  // What compiles here, for people: "NVRTC 12.4 (/usr/...)"; or why nothing does.
  virtual StatusOr<std::string> Compiler() const = 0;

  // The target with what it leaves to this machine filled in: the processor's name. Refuses what
  // the compiler does not know.
  virtual StatusOr<target::Target> Resolve(const target::Target& target) const { return target; }

  // Those of these features of processors that code for the target may use: what runs it must have
  // them.
  virtual StatusOr<std::vector<std::string>> FeaturesUsed(
      const target::Target& /*target*/, std::span<const std::string_view> /*features*/) const {
    return std::vector<std::string>();
  }

  // InvalidArgument: a device like this refuses to run the program, found before anything is
  // generated.
  virtual Status Check(const ir::Program& program, const target::Target& target,
                       const target::HardwareParams& hardware) const;

  // `target` is a resolved one. Faults are for tests of what becomes of broken programs; those of
  // kinds that run none are never asked for one.
  virtual StatusOr<Compiled> Compile(const ir::Program& program, const target::Target& target,
                                     const CompileOptions& options, CompileTimes& times) const = 0;

  // The first is the one that most people mean.
  virtual std::span<const CodeForm> forms() const { return {}; }
  // `form`: the name of one of them. Works without a compiler as far as it can.
  virtual StatusOr<std::string> Show(std::string_view form, const ir::Program& program,
                                     const target::Target& target,
                                     const ir::PassInstruments* instruments) const;
  // Runs the generator's own passes alone, for who watches them.
  virtual Status RunPasses(const ir::Program& program,
                           const ir::PassInstruments* instruments) const;
};

// A table: AllBackends (backends.h), or another one in tests.
using Backends = std::span<const Backend* const>;

}  // namespace kiln::codegen
