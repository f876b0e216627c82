// Runs programs on random arguments, so that two forms of a program can be compared.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "base/status_testing.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/ndarray.h"
#include "compiler/ir/program.h"

namespace kiln::ir {

// Returns the program's arguments after it was interpreted. Before, they are small whole numbers,
// the same ones for all programs with such arguments.
inline std::vector<NDArray> InterpretRandom(const Program& program) {
  std::vector<NDArray> arrays;
  for (int slot = 0; slot < program.num_args(); ++slot) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(slot)];
    NDArray& array = arrays.emplace_back(buffer.type, buffer.shape);
    array.FillRandom(static_cast<uint64_t>(slot), RandomKind::kSmallIntegers, 0);
  }
  std::vector<NDArray*> arguments;
  for (NDArray& array : arrays) arguments.push_back(&array);
  EXPECT_OK(Interpret(program, arguments));
  return arrays;
}

}  // namespace kiln::ir
