// Walks over the nodes of an expression. Each distinct node is visited once, so that the cost is
// linear even if parts are shared.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace kiln::ir {

// Visits every distinct node once, children first.
template <typename Visitor>
void Visit(Expr e, Visitor&& visit);

// Return true if the expression has such a node.
bool UsesVar(Expr e, int32_t var);
bool HasLoad(Expr e);

// ---- implementation of templates

namespace internal {
// A set of nodes: a list while it is small, which suffices for most expressions, then a hash table.
class NodeSet {
 public:
  bool Contains(Expr e) const {
    if (table_.empty()) return std::find(list_, list_ + size_, e) != list_ + size_;
    return *FindSlot(e) == e;
  }
  // The node must not be in the set yet.
  void Insert(Expr e) {
    if (table_.empty()) {
      if (size_ < kListSize) {
        list_[size_++] = e;
        return;
      }
      Rehash(4 * kListSize);
    } else if (2 * size_ >= table_.size()) {
      Rehash(2 * table_.size());
    }
    *FindSlot(e) = e;
    ++size_;
  }

 private:
  static constexpr size_t kListSize = 24;
  Expr* FindSlot(Expr e) const {
    size_t i = (reinterpret_cast<uintptr_t>(e) * 0x9e3779b97f4a7c15ULL) >> shift_;
    while (table_[i] != nullptr && table_[i] != e) i = (i + 1) & (table_.size() - 1);
    return const_cast<Expr*>(&table_[i]);
  }
  void Rehash(size_t num_slots) {
    num_slots = std::bit_ceil(num_slots);
    std::vector<Expr> old(num_slots, nullptr);
    old.swap(table_);
    if (old.empty()) old.assign(list_, list_ + size_);
    shift_ = 64 - std::countr_zero(num_slots);
    for (Expr e : old) {
      if (e != nullptr) *FindSlot(e) = e;
    }
  }

  size_t size_ = 0;
  int shift_ = 0;
  Expr list_[kListSize];
  // A hash table with open addressing.
  std::vector<Expr> table_;
};

template <typename Visitor>
void VisitNode(Expr e, NodeSet& seen, Visitor& visit) {
  if (seen.Contains(e)) return;
  for (Expr a : e->args()) VisitNode(a, seen, visit);
  seen.Insert(e);
  visit(e);
}
}  // namespace internal

template <typename Visitor>
void Visit(Expr e, Visitor&& visit) {
  internal::NodeSet seen;
  internal::VisitNode(e, seen, visit);
}

}  // namespace kiln::ir
