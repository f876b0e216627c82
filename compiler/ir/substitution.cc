#include "compiler/ir/substitution.h"

#include <unordered_map>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace kiln::ir {
namespace {

// A small association list. Bodies have tens of distinct nodes, for which a hash map costs more
// than it saves.
class Memo {
 public:
  Expr Find(Expr key) const {
    if (big_.empty()) {
      for (const auto& [k, v] : small_) {
        if (k == key) return v;
      }
      return nullptr;
    }
    auto it = big_.find(key);
    return it == big_.end() ? nullptr : it->second;
  }
  void Add(Expr key, Expr value) {
    if (big_.empty() && small_.size() < 64) {
      small_.emplace_back(key, value);
      return;
    }
    if (big_.empty()) big_.insert(small_.begin(), small_.end());
    big_.emplace(key, value);
  }

 private:
  absl::InlinedVector<std::pair<Expr, Expr>, 16> small_;
  std::unordered_map<Expr, Expr> big_;
};

class Substituter {
 public:
  // is_own: the given expressions belong to the pool, so an expression that does not change need
  // not be copied.
  Substituter(ExprPool& pool, const Substitution& names, bool is_own)
      : pool_(pool), names_(names), is_own_(is_own) {}

  Expr Run(Expr e) {
    if (e->op == Op::kVar) {
      const Expr value = names_.VarOrNull(e->id);
      return value != nullptr ? value : Unchanged(e);
    }
    if (e->num_args == 0 && e->op != Op::kLoad) return Unchanged(e);
    if (const Expr known = memo_.Find(e)) return known;
    const Expr result = Rebuild(e);
    memo_.Add(e, result);
    return result;
  }

 private:
  Expr Unchanged(Expr leaf) { return is_own_ ? leaf : pool_.WithArgs(leaf, {}); }

  Expr Rebuild(Expr e) {
    const Expr first = e->op == Op::kLoad ? names_.FirstIndexOrNull(e->id) : nullptr;
    absl::InlinedVector<Expr, 8> args;
    if (first != nullptr) args.push_back(first);
    bool changed = !is_own_ || first != nullptr;
    for (Expr a : e->args()) {
      args.push_back(Run(a));
      changed |= args.back() != a;
    }
    if (e->op != Op::kLoad) return changed ? pool_.WithArgs(e, args) : e;
    const int32_t slot = names_.SlotFor(e->id);
    return changed || slot != e->id ? pool_.Load(slot, args, e->type) : e;
  }

  ExprPool& pool_;
  const Substitution& names_;
  const bool is_own_;
  Memo memo_;
};
}  // namespace

Expr ExprPool::Import(Expr e) { return Substitute(e, {}); }

Expr ExprPool::Substitute(Expr e, const Substitution& names) {
  return Substituter(*this, names, Owns(e)).Run(e);
}

}  // namespace kiln::ir
