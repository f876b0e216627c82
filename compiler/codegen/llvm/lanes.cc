#include "compiler/codegen/llvm/lanes.h"

#include <algorithm>
#include <span>
#include <utility>

#include "compiler/arith/range.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Interval;
using arith::Linear;
using arith::Term;
using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

struct BufferAccess {
  int32_t slot;
  std::vector<Expr> indices;
};

// All accesses in a loop body, and the slots that are stored to.
struct Accesses {
  std::vector<BufferAccess> all;
  std::vector<bool> stored;
  std::vector<bool> inner_vars;
};

void CollectLoads(Expr e, Accesses& out) {
  ir::Visit(e, [&](Expr node) {
    if (node->op != ir::Op::kLoad) return;
    out.all.push_back({node->id, {node->args().begin(), node->args().end()}});
  });
}

void Collect(Stmt stmt, Accesses& out) {
  for (Expr e : stmt->exprs()) CollectLoads(e, out);
  if (stmt->kind == StmtKind::kStore) {
    out.stored[static_cast<size_t>(stmt->slot)] = true;
    out.all.push_back({stmt->slot, {stmt->indices().begin(), stmt->indices().end()}});
  }
  if (stmt->kind == StmtKind::kFor) out.inner_vars[static_cast<size_t>(stmt->var)] = true;
  for (Stmt child : stmt->children()) Collect(child, out);
}

bool UsesAny(Expr e, const std::vector<bool>& vars) {
  bool uses = false;
  ir::Visit(e, [&](Expr node) {
    if (node->op == ir::Op::kVar && vars[static_cast<size_t>(node->id)]) uses = true;
  });
  return uses;
}

// One index: a value per lane, the part that is fixed for the whole loop, and the range of the
// rest.
struct IndexParts {
  std::vector<int64_t> lanes;
  Linear fixed;
  Interval rest;
};

class PartSplitter {
 public:
  PartSplitter(Stmt loop, const Accesses& accesses, std::vector<std::optional<int64_t>> known,
               std::span<const Interval> ranges)
      : loop_(loop), accesses_(accesses), known_(std::move(known)), ranges_(ranges) {}

  std::optional<IndexParts> Split(const Linear& form) {
    if (form.overflow) return std::nullopt;
    IndexParts parts;
    parts.lanes.assign(static_cast<size_t>(loop_->extent), 0);
    parts.rest = Interval::Of(form.constant);
    for (const Term& term : form.terms) {
      if (ir::HasLoad(term.atom)) return std::nullopt;
      if (ir::UsesVar(term.atom, loop_->var)) {
        if (!AddLanes(term, parts.lanes)) return std::nullopt;
      } else if (UsesAny(term.atom, accesses_.inner_vars)) {
        parts.rest = parts.rest + arith::RangeOf(term.atom, ranges_) * term.coefficient;
        if (!parts.rest.bounded()) return std::nullopt;
      } else {
        parts.fixed.AddTerm(term.atom, term.coefficient);
      }
    }
    return parts;
  }

 private:
  bool AddLanes(const Term& term, std::vector<int64_t>& lanes) {
    auto& known = known_[static_cast<size_t>(loop_->var)];
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      known = static_cast<int64_t>(lane);
      const auto value = arith::Evaluate(term.atom, known_);
      known.reset();
      if (!value) return false;
      lanes[lane] += term.coefficient * *value;
    }
    return true;
  }

  Stmt loop_;
  const Accesses& accesses_;
  std::vector<std::optional<int64_t>> known_;
  std::span<const Interval> ranges_;
};

bool SameFixed(const Linear& a, const Linear& b) {
  Linear difference = a;
  difference.AddScaled(b, -1);
  return difference.is_constant();
}

// Returns true if every lane's set of indices is disjoint from that of every other lane.
bool Disjoint(const std::vector<IndexParts>& accesses) {
  Interval rest = accesses[0].rest;
  for (const IndexParts& parts : accesses) {
    if (parts.lanes != accesses[0].lanes || !SameFixed(parts.fixed, accesses[0].fixed))
      return false;
    rest = arith::Hull(rest, parts.rest);
  }
  std::vector<int64_t> sorted = accesses[0].lanes;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i] - sorted[i - 1] <= rest.hi - rest.lo) return false;
  }
  return true;
}

bool HasAlloc(Stmt stmt) {
  if (stmt->kind == StmtKind::kAlloc) return true;
  return std::any_of(stmt->children().begin(), stmt->children().end(), HasAlloc);
}
}  // namespace

// Returns true if for each stored buffer there is a dimension, or the flattened index, in which all
// accesses of one lane are disjoint from all accesses of the others.
bool LanesAreIndependent(const ir::Program& program, Stmt loop, arith::KnownVars known,
                         std::span<const Interval> ranges) {
  if (HasAlloc(loop->body())) return false;
  Accesses accesses;
  accesses.stored.resize(program.buffers.size());
  accesses.inner_vars.resize(program.vars.size());
  Collect(loop->body(), accesses);
  PartSplitter splitter(loop, accesses, {known.begin(), known.end()}, ranges);
  for (size_t slot = 0; slot < accesses.stored.size(); ++slot) {
    if (!accesses.stored[slot]) continue;
    const size_t rank = program.buffers[slot].shape.size();
    bool independent = false;
    // d == rank stands for the flattened index.
    for (size_t d = 0; d <= rank && !independent; ++d) {
      std::vector<IndexParts> parts;
      bool is_known = true;
      for (const BufferAccess& access : accesses.all) {
        if (access.slot != static_cast<int32_t>(slot)) continue;
        const Linear form = d == rank
                                ? arith::Flatten(access.indices, program.buffers[slot].shape, known)
                                : IndexForm(access.indices[d], known);
        auto split = splitter.Split(form);
        if (!(is_known = split.has_value())) break;
        parts.push_back(*std::move(split));
      }
      independent = is_known && Disjoint(parts);
    }
    if (!independent) return false;
  }
  return true;
}

bool Lanes::Depends(Expr e) {
  if (e->op == ir::Op::kVar) return e->id == var;
  if (e->num_args == 0) return false;
  const auto it = depends.find(e);
  if (it != depends.end()) return it->second;
  bool result = false;
  for (Expr arg : e->args()) result = result || Depends(arg);
  depends.emplace(e, result);
  return result;
}

Linear IndexForm(Expr index, arith::KnownVars known) {
  Linear form = arith::Linearize(index, known);
  arith::JoinQuotients(form, known);
  return form;
}

std::optional<LaneIndex> Lanes::Split(const Linear& form,
                                      std::vector<std::optional<int64_t>>& known_vars) {
  LaneIndex index;
  index.shared.constant = form.constant;
  index.shared.overflow = form.overflow;
  index.offsets.assign(static_cast<size_t>(count), 0);
  auto& known = known_vars[static_cast<size_t>(var)];
  for (const Term& term : form.terms) {
    const bool is_lane = term.atom->op == ir::Op::kVar && term.atom->id == var;
    if (is_lane && !known_base) {
      // The variable stands for the base. EvalVar is not called for it.
      index.shared.terms.push_back(term);
      for (size_t l = 0; l < index.offsets.size(); ++l)
        index.offsets[l] += term.coefficient * static_cast<int64_t>(l);
      continue;
    }
    if (!Depends(term.atom)) {
      index.shared.terms.push_back(term);
      continue;
    }
    if (!known_base) return std::nullopt;
    for (size_t l = 0; l < index.offsets.size(); ++l) {
      known = *known_base + static_cast<int64_t>(l);
      const auto value = arith::Evaluate(term.atom, known_vars);
      known.reset();
      if (!value) return std::nullopt;
      index.offsets[l] += term.coefficient * *value;
    }
  }
  const int64_t first = index.offsets[0];
  index.shared.constant += first;
  for (int64_t& offset : index.offsets) offset -= first;
  return index;
}

bool LaneIndex::IsUniform() const {
  return std::all_of(offsets.begin(), offsets.end(), [](int64_t o) { return o == 0; });
}

bool LaneIndex::IsContiguous() const {
  for (size_t l = 0; l < offsets.size(); ++l) {
    if (offsets[l] != static_cast<int64_t>(l)) return false;
  }
  return true;
}

}  // namespace kiln::codegen
