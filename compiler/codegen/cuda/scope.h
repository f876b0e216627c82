// The variables of a CUDA kernel while its text is made. Internal to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/arith/simplify.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// Each variable of the program has a name, a range, and a value. The value is the variable itself,
// but for that of a loop that is emitted as vectors: inside, its value is lanes*chunk + lane. The
// chunk is a variable that the program does not have; it counts the vectors.
//
// Expressions of the scope are those of its pool, made of its variables (the simplifier's); those
// of the program become such by putting in the values. The simplifier also knows the conditions
// that hold at the current place: whoever opens a condition keeps an arith::FactScope.
//
// One thread.
class CudaScope {
 public:
  CudaScope(const ir::Program& program, const std::vector<std::string>& names);

  ir::ExprPool& pool() { return pool_; }
  arith::Simplifier& simplifier() { return simplifier_; }

  const std::string& name(int32_t var) const { return names_[static_cast<size_t>(var)]; }
  void SetName(int32_t var, std::string name) {
    names_[static_cast<size_t>(var)] = std::move(name);
  }

  // [variable]
  const std::vector<arith::Linear>& values() const { return values_; }
  const arith::Linear& value(int32_t var) const { return values_[static_cast<size_t>(var)]; }
  void SetValue(int32_t var, arith::Linear value) {
    values_[static_cast<size_t>(var)] = std::move(value);
  }
  // The variable stands for itself again.
  void ResetValue(int32_t var) { SetValue(var, simplifier_.Var(var)); }

  // The variable that counts the vectors of `lanes` elements of the loop: 0 .. extent-1. It is the
  // same one each time, and has no name yet.
  int32_t ChunkVar(int32_t var, int lanes, int64_t extent);

  // A variable that the program does not have: 0 .. extent-1. The same key gives the same one.
  int32_t OwnVar(std::string_view key, int64_t extent);

 private:
  int32_t AddVar(int64_t extent);

  ir::ExprPool pool_;
  arith::Simplifier simplifier_{pool_};
  std::vector<std::string> names_;
  std::vector<arith::Linear> values_;
  std::unordered_map<int32_t, std::map<int, int32_t>> chunk_vars_;  // loop, lanes -> variable
  std::map<std::pair<std::string, int64_t>, int32_t> own_vars_;     // key, extent -> variable
};

}  // namespace kiln::codegen
