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

// Begins with the stages and the arguments. The constructor's arguments must outlive this object.
class ProgramTables {
 public:
  ProgramTables(const schedule::State& state, Bounds& bounds, const Attachments& attachments,
                bool gpu);

  ir::Program& program() { return program_; }
  // Returns the program with the variables of all loops. Must be the last call.
  ir::Program Take();

  // Returns the buffer of a stage's output. It is made on the first call.
  int32_t SlotOf(int s, int output);
  // Returns the buffers of all outputs. A buffer that is not made yet is negative.
  const std::vector<int32_t>& SlotsOf(int s) const { return slots_[static_cast<size_t>(s)]; }
  int32_t NewBuffer(std::string_view name, ir::Type type, std::vector<int64_t> shape,
                    ir::Scope scope);

  // Returns the hints of stage s that a program keeps in this place. For a kernel, s is its root
  // stage.
  ir::Hints HintsOf(int s, ir::HintPlace place) const;

  // Returns how the input of this stage is packed. Null: it is not.
  const PackedInput* PackedOf(int s) const;

  // Converts indices of the axes to indices of the dimensions of the stage's buffer. A program's
  // arguments always keep their layout: LA steps refuse them.
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
  // Indexed by [stage][output]. -1: the buffer is not made yet.
  std::vector<std::vector<int32_t>> slots_;
  // Names of the first num_named_ buffers.
  Names names_;
  size_t num_named_ = 0;
};

}  // namespace kiln::lower
