// A hand-written kernel made ready for one computation and one set of values: its source with the
// parameters as macros, and the numbers of its launch.
//
// Pure functions. Cost: microseconds, and that of copying the source.
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

// What is passed at one place.
struct BoundArgument {
  int tensor = -1;    // an index into the computation's arguments; -1: it is no tensor
  char block = '\0';  // 'x', 'y' or 'z': the number of the block; '\0': it is none
  ir::Type type = {};
  std::variant<int64_t, double> number = {};
};

struct Specialization {
  Language language = Language::kC;
  // What the compiler is given: a #define for each constant and parameter, then the source. Lines
  // count as in the source's file.
  std::string source;
  std::string function;
  std::array<int64_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  int64_t shared_bytes = 0;  // dynamic ones
  std::vector<BoundArgument> arguments;
  std::vector<std::string> options;  // of the compiler

  int64_t threads() const { return block[0] * block[1] * block[2]; }
};

// InvalidArgument: the text and the computation do not fit each other (a tensor that is not there,
// an extent of one), or the launch has no meaning with these values (an extent below 1).
// `values`: one for each parameter, in their order; they need not be in its list.
StatusOr<Specialization> Specialize(const KernelText& text, const dag::Dag& dag,
                                    std::span<const NamedValue> values);
// The reference kernel. It has one.
StatusOr<Specialization> SpecializeReference(const KernelText& text, const dag::Dag& dag);

// The restrictions of a text, ready to be asked about many configurations.
class Restrictions {
 public:
  // InvalidArgument: a constant cannot be computed for this computation.
  static StatusOr<Restrictions> Make(KernelText text, dag::DagPtr dag);
  // Do all hold? One that cannot be computed with these values (a division by 0) does not. Cost: a
  // microsecond or two.
  bool Hold(std::span<const NamedValue> values) const;

 private:
  struct Facts;
  explicit Restrictions(std::shared_ptr<const Facts> facts) : facts_(std::move(facts)) {}
  std::shared_ptr<const Facts> facts_;
};

// FailedPrecondition: a device like this cannot launch it, known before it is built: more threads
// in a block than it has, more dynamic shared memory, a grid or block that no GPU takes.
Status CheckLaunch(const Specialization& kernel, const target::HardwareParams& hardware);

// Nothing of the text that does not depend on values is wrong for this computation: its arguments,
// constants and shapes.
Status CheckBinding(const KernelText& text, const dag::Dag& dag);

}  // namespace kiln::handwritten
