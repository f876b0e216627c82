// Replacements for the variables and buffers of an expression (ExprPool::Substitute).
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace kiln::ir {

// Replaces variables and buffers. A variable or buffer stays if it has no entry or a null or
// negative entry. The replacements themselves are not substituted in turn.
struct Substitution {
  // Indexed by variable.
  std::vector<Expr> vars = {};
  // Indexed by buffer. The entry is another buffer.
  std::vector<int32_t> slots = {};
  // Indexed by buffer. The entry is an index that is put before the indices of each access.
  std::vector<Expr> first_indices = {};

  void SetVar(int32_t var, Expr value) { Set(vars, var, value, Expr{nullptr}); }
  void SetSlot(int32_t slot, int32_t to) { Set(slots, slot, to, -1); }
  void SetFirstIndex(int32_t slot, Expr index) { Set(first_indices, slot, index, Expr{nullptr}); }

  Expr VarOrNull(int32_t var) const { return Get(vars, var, Expr{nullptr}); }
  int32_t SlotFor(int32_t slot) const {
    const int32_t to = Get(slots, slot, -1);
    return to < 0 ? slot : to;
  }
  Expr FirstIndexOrNull(int32_t slot) const { return Get(first_indices, slot, Expr{nullptr}); }

 private:
  template <typename T>
  static T Get(const std::vector<T>& table, int32_t id, T none) {
    return static_cast<size_t>(id) < table.size() ? table[static_cast<size_t>(id)] : none;
  }
  template <typename T>
  static void Set(std::vector<T>& table, int32_t id, T value, T none) {
    if (static_cast<size_t>(id) >= table.size()) table.resize(static_cast<size_t>(id) + 1, none);
    table[static_cast<size_t>(id)] = value;
  }
};

}  // namespace kiln::ir
