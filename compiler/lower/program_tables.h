// The tables of a program while its nests are built: stages, buffers, loop variables.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/lower/attachments.h"
#include "compiler/lower/bounds.h"
#include "compiler/lower/names.h"
#include "compiler/lower/packed_layout.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// Begins with the stages and the arguments. What it is made of must outlive it.
class ProgramTables {
 public:
  ProgramTables(const schedule::State& state, Bounds& bounds, const Attachments& attachments,
                bool gpu);

  ir::Program& program() { return program_; }
  // With the variables of all loops; the last call.
  ir::Program Take();

  // The buffer of a stage's output, made when it is first asked for.
  int32_t SlotOf(int s, int output);
  // Of all outputs; negative where not made yet.
  const std::vector<int32_t>& SlotsOf(int s) const { return slots_[static_cast<size_t>(s)]; }
  int32_t NewBuffer(std::string_view name, ir::Type type, std::vector<int64_t> shape,
                    ir::Scope scope);

  // Those of stage s that a program keeps in this place; of a kernel, s is its root stage.
  ir::Hints HintsOf(int s, ir::HintPlace place) const;

  // How the input of this stage is packed; null: it is not.
  const PackedInput* PackedOf(int s) const;

  // Indices of the axes -> of the dimensions of the stage's buffer. A program's arguments are never
  // laid out otherwise: LA steps refuse them.
  std::vector<ir::Expr> LaidOut(int s, std::vector<ir::Expr> indices) const;

 private:
  void MakeStages();
  void MakeArguments();
  void MakeLoopVars();
  void MakeBuffer(int s, int output, ir::Scope scope, std::vector<int64_t> shape);
  std::vector<int64_t> ShapeOf(int s) const;

  const schedule::State& state_;
  Bounds& bounds_;
  const Attachments& attachments_;
  const bool gpu_;
  const std::vector<PackedInput> packed_;
  ir::Program program_;
  std::vector<std::vector<int32_t>> slots_;  // [stage][output] -> buffer, -1: not made yet
  Names names_;                              // of the first num_named_ buffers
  size_t num_named_ = 0;
};

}  // namespace kiln::lower
