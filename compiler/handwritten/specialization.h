// A hand-written kernel made ready for one computation and one set of values: its source with the
// parameters as macros, and the numbers of its launch.
//
// Pure functions. Cost: microseconds, plus the copy of the source.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/handwritten/kernel_text.h"
#include "compiler/target/target.h"

namespace kiln::handwritten {

// One argument of the call.
struct BoundArgument {
  // Index into the computation's arguments. -1: the argument is no tensor.
  int tensor = -1;
  // 'x', 'y' or 'z' for the number of the block. '\0': the argument is no block.
  char block = '\0';
  ir::Type type = {};
  std::variant<int64_t, double> number = {};
};

struct Specialization {
  Language language = Language::kC;
  // The compiler's input: a #define for each constant and parameter, then the source. Lines count
  // as in the source's file.
  std::string source;
  std::string function;
  std::array<int64_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  // Bytes of dynamic shared memory.
  int64_t shared_bytes = 0;
  std::vector<BoundArgument> arguments;
  // Options of the compiler.
  std::vector<std::string> options;

  int64_t threads() const { return block[0] * block[1] * block[2]; }
};

// InvalidArgument: the text and the computation do not fit each other (a missing tensor, or an
// extent of it), or the launch has no meaning with these values (an extent below 1). `values` has
// one value for each parameter, in their order. A value need not be in the parameter's list.
StatusOr<Specialization> Specialize(const KernelText& text, const dag::Dag& dag,
                                    std::span<const NamedValue> values);
// Makes the reference kernel ready. The text must have one.
StatusOr<Specialization> SpecializeReference(const KernelText& text, const dag::Dag& dag);

// The restrictions of a text, ready to be evaluated for many configurations.
class Restrictions {
 public:
  // InvalidArgument: a constant cannot be computed for this computation.
  static StatusOr<Restrictions> Make(KernelText text, dag::DagPtr dag);
  // Returns true if all restrictions hold. A restriction that cannot be computed with these values
  // (a division by 0) does not hold. Cost: a microsecond or two.
  bool Hold(std::span<const NamedValue> values) const;

 private:
  struct Facts;
  explicit Restrictions(std::shared_ptr<const Facts> facts) : facts_(std::move(facts)) {}
  std::shared_ptr<const Facts> facts_;
};

// FailedPrecondition: a device with this hardware cannot launch the kernel: the block has too many
// threads or too much dynamic shared memory, or no GPU accepts the grid or block. The check needs
// no build.
Status CheckLaunch(const Specialization& kernel, const target::HardwareParams& hardware);

// Checks the parts of the text that do not depend on values for this computation: arguments,
// constants and shapes.
Status CheckBinding(const KernelText& text, const dag::Dag& dag);

}  // namespace kiln::handwritten
