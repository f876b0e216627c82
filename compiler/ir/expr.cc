#include "compiler/ir/expr.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "compiler/ir/scalar.h"

namespace kiln::ir {
namespace {

constexpr size_t kBlockBytes = 16 << 10;

uint64_t Mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdULL;
  return h ^ (h >> 32);
}

// Folding of two integer constants; false when the operation has no value (division by zero).
bool FoldConstants(Op op, int64_t a, int64_t b, int64_t* out) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kAdd:
      *out = static_cast<int64_t>(ua + ub);
      return true;
    case Op::kSub:
      *out = static_cast<int64_t>(ua - ub);
      return true;
    case Op::kMul:
      *out = static_cast<int64_t>(ua * ub);
      return true;
    case Op::kFloorDiv:
      if (b == 0) return false;
      *out = FloorDiv(a, b);
      return true;
    case Op::kFloorMod:
      if (b == 0) return false;
      *out = FloorMod(a, b);
      return true;
    case Op::kMin:
      *out = a < b ? a : b;
      return true;
    case Op::kMax:
      *out = a > b ? a : b;
      return true;
    case Op::kEq:
      *out = a == b;
      return true;
    case Op::kNe:
      *out = a != b;
      return true;
    case Op::kLt:
      *out = a < b;
      return true;
    case Op::kLe:
      *out = a <= b;
      return true;
    case Op::kGt:
      *out = a > b;
      return true;
    case Op::kGe:
      *out = a >= b;
      return true;
    case Op::kAnd:
      *out = (a != 0) && (b != 0);
      return true;
    case Op::kOr:
      *out = (a != 0) || (b != 0);
      return true;
    default:
      return false;
  }
}

constexpr std::array<std::pair<std::string_view, int>, 14> kIntrinsics = {{
    {"exp", 1},
    {"log", 1},
    {"sqrt", 1},
    {"rsqrt", 1},
    {"tanh", 1},
    {"sigmoid", 1},
    {"erf", 1},
    {"pow", 2},
    {"abs", 1},
    {"floor", 1},
    {"ceil", 1},
    {"round", 1},
    {"sin", 1},
    {"cos", 1},
}};

// Blocks of pools that are gone, for the next pool of the thread. A search makes and drops a pool
// for each program it looks at; when the allocator gets back as much at once, it merges all its
// small free chunks, and the next allocations are slow.
class SpareBlocks {
 public:
  static std::unique_ptr<char[]> Take() {
    if (ended_ || OfThread().blocks_.empty()) return nullptr;
    std::unique_ptr<char[]> block = std::move(OfThread().blocks_.back());
    OfThread().blocks_.pop_back();
    return block;
  }

  // At least kBlockBytes long.
  static void Give([[maybe_unused]] std::unique_ptr<char[]> block) {
#ifndef __SANITIZE_ADDRESS__  // which would no longer see who uses nodes of a pool that is gone
    if (!ended_ && OfThread().blocks_.size() < kMost)
      OfThread().blocks_.push_back(std::move(block));
#endif
  }

  ~SpareBlocks() { ended_ = true; }

 private:
  static constexpr size_t kMost = 32;

  static SpareBlocks& OfThread() {
    thread_local SpareBlocks blocks;
    return blocks;
  }

  // Pools may outlive this at the end of a thread.
  static thread_local bool ended_;
  std::vector<std::unique_ptr<char[]>> blocks_;
};

thread_local bool SpareBlocks::ended_ = false;

}  // namespace

// The quotient of the lowest int64 and -1 wraps; the processor would trap.
int64_t FloorDiv(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

int64_t FloorMod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}

bool IsComparison(Op op) { return op >= Op::kEq && op <= Op::kGe; }
bool IsBinary(Op op) { return op >= Op::kAdd && op <= Op::kOr; }

ExprPool::ExprPool() : table_(256, nullptr) {}

ExprPool::~ExprPool() {
  for (std::unique_ptr<char[]>& block : blocks_) SpareBlocks::Give(std::move(block));
}

void* ExprPool::Allocate(size_t size) {
  size = (size + 7) & ~size_t{7};
  if (next_ == nullptr || static_cast<size_t>(end_ - next_) < size) {
    const size_t block = size > kBlockBytes ? size : kBlockBytes;
    std::unique_ptr<char[]> spare;
    if (block == kBlockBytes) spare = SpareBlocks::Take();
    blocks_.push_back(spare != nullptr ? std::move(spare)
                                       : std::make_unique_for_overwrite<char[]>(block));
    next_ = blocks_.back().get();
    end_ = next_ + block;
  }
  void* result = next_;
  next_ += size;
  return result;
}

void ExprPool::GrowTable() {
  std::vector<Expr> old(table_.size() * 2, nullptr);
  old.swap(table_);
  for (Expr e : old) {
    if (e == nullptr) continue;
    size_t i = e->hash & (table_.size() - 1);
    while (table_[i] != nullptr) i = (i + 1) & (table_.size() - 1);
    table_[i] = e;
  }
}

Expr ExprPool::Intern(Op op, Type type, int32_t id, int64_t value_bits,
                      std::span<const Expr> args) {
  uint64_t hash =
      Mix(static_cast<uint64_t>(op) << 16 | static_cast<uint64_t>(type.code) << 8 | type.bits,
          static_cast<uint64_t>(static_cast<uint32_t>(id)));
  hash = Mix(hash, static_cast<uint64_t>(value_bits));
  for (Expr a : args) hash = Mix(hash, a->hash);

  size_t i = hash & (table_.size() - 1);
  for (; table_[i] != nullptr; i = (i + 1) & (table_.size() - 1)) {
    Expr e = table_[i];
    if (e->hash == hash && e->op == op && e->type == type && e->id == id &&
        e->int_value == value_bits && e->num_args == args.size() &&
        std::equal(args.begin(), args.end(), e->args_begin)) {
      return e;
    }
  }
  Expr* copied = nullptr;
  if (!args.empty()) {
    copied = static_cast<Expr*>(Allocate(args.size_bytes()));
    std::copy(args.begin(), args.end(), copied);
  }
  Node* node = new (Allocate(sizeof(Node))) Node;
  node->op = op;
  node->type = type;
  node->num_args = static_cast<uint16_t>(args.size());
  node->id = id;
  node->int_value = value_bits;
  node->args_begin = copied;
  node->hash = hash;
  table_[i] = node;
  if (++num_nodes_ * 2 > table_.size()) GrowTable();
  return node;
}

Expr ExprPool::Int(int64_t value, Type type) {
  return Intern(Op::kInt, type, 0, WrapToType(value, type), {});
}

Expr ExprPool::Float(double value, Type type) {
  return Intern(Op::kFloat, type, 0, std::bit_cast<int64_t>(RoundToType(value, type)), {});
}

Expr ExprPool::Var(int32_t id, Type type) { return Intern(Op::kVar, type, id, 0, {}); }

// Identities that hold for integers and bools; null when none applies.
Expr ExprPool::FoldIntegers(Op op, Type type, Expr a, Expr b) {
  if (a->is_const_int() && b->is_const_int()) {
    int64_t value;
    if (FoldConstants(op, a->int_value, b->int_value, &value)) return Int(value, type);
    return nullptr;
  }
  switch (op) {
    case Op::kAdd:
      if (a->is_const_int(0)) return b;
      if (b->is_const_int(0)) return a;
      return nullptr;
    case Op::kSub:
      if (b->is_const_int(0)) return a;
      if (a == b) return Int(0, type);
      return nullptr;
    case Op::kMul:
      if (a->is_const_int(1)) return b;
      if (b->is_const_int(1)) return a;
      if (a->is_const_int(0)) return a;
      if (b->is_const_int(0)) return b;
      return nullptr;
    case Op::kFloorDiv:
      if (b->is_const_int(1) || a->is_const_int(0)) return a;
      return nullptr;
    case Op::kFloorMod:
      if (b->is_const_int(1)) return Int(0, type);
      if (a->is_const_int(0)) return a;
      return nullptr;
    case Op::kMin:
    case Op::kMax:
      return a == b ? a : nullptr;
    case Op::kAnd:
      if (a->is_const_int(1)) return b;
      if (b->is_const_int(1)) return a;
      if (a->is_const_int(0)) return a;
      if (b->is_const_int(0)) return b;
      return a == b ? a : nullptr;
    case Op::kOr:
      if (a->is_const_int(0)) return b;
      if (b->is_const_int(0)) return a;
      if (a->is_const_int(1)) return a;
      if (b->is_const_int(1)) return b;
      return a == b ? a : nullptr;
    case Op::kEq:
    case Op::kLe:
    case Op::kGe:
      return a == b ? Bool(true) : nullptr;
    case Op::kNe:
    case Op::kLt:
    case Op::kGt:
      return a == b ? Bool(false) : nullptr;
    default:
      return nullptr;
  }
}

Expr ExprPool::Binary(Op op, Expr a, Expr b) {
  KILN_CHECK(IsBinary(op) && a->type == b->type, "op {} on {} and {}", static_cast<int>(op),
             TypeName(a->type), TypeName(b->type));
  KILN_CHECK(op != Op::kDiv || a->type.is_float(), "'/' on {}, which needs '//'",
             TypeName(a->type));
  KILN_CHECK(op < Op::kAnd || a->type.is_bool(), "logic on {}", TypeName(a->type));
  const Type type = IsComparison(op) ? kBool : a->type;
  if (!a->type.is_float()) {
    if (Expr folded = FoldIntegers(op, type, a, b)) return folded;
  }
  const Expr args[] = {a, b};
  return Intern(op, type, 0, 0, args);
}

Expr ExprPool::Not(Expr a) {
  KILN_CHECK(a->type.is_bool(), "'!' on {}", TypeName(a->type));
  if (a->is_const_int()) return Bool(a->int_value == 0);
  if (a->op == Op::kNot) return a->arg(0);
  const Expr args[] = {a};
  return Intern(Op::kNot, kBool, 0, 0, args);
}

Expr ExprPool::Select(Expr condition, Expr a, Expr b) {
  KILN_CHECK(condition->type.is_bool() && a->type == b->type, "choice by {} between {} and {}",
             TypeName(condition->type), TypeName(a->type), TypeName(b->type));
  if (condition->is_const_int()) return condition->int_value ? a : b;
  if (a == b) return a;
  const Expr args[] = {condition, a, b};
  return Intern(Op::kSelect, a->type, 0, 0, args);
}

Expr ExprPool::If(Expr condition, Expr a, Expr b) {
  KILN_CHECK(condition->type.is_bool() && a->type == b->type, "choice by {} between {} and {}",
             TypeName(condition->type), TypeName(a->type), TypeName(b->type));
  if (condition->is_const_int()) return condition->int_value ? a : b;
  const Expr args[] = {condition, a, b};
  return Intern(Op::kIf, a->type, 0, 0, args);
}

Expr ExprPool::Cast(Type type, Expr a) {
  if (a->type == type) return a;
  if (a->op == Op::kInt) {
    const Value value = CastValue(Value::Int(a->int_value), a->type, type);
    return type.is_float() ? Float(value.f, type) : Int(value.i, type);
  }
  if (a->op == Op::kFloat && type.is_float()) return Float(a->float_value, type);
  const Expr args[] = {a};
  return Intern(Op::kCast, type, 0, 0, args);
}

Expr ExprPool::Load(int32_t slot, std::span<const Expr> indices, Type type) {
  KILN_CHECK(indices.size() <= UINT16_MAX, "{} indices", indices.size());
  return Intern(Op::kLoad, type, slot, 0, indices);
}

Expr ExprPool::Call(Intrinsic intrinsic, std::span<const Expr> args) {
  KILN_CHECK(static_cast<int>(args.size()) == IntrinsicArity(intrinsic), "{} of {} arguments",
             IntrinsicName(intrinsic), args.size());
  const Type type = args[0]->type;
  KILN_CHECK(type.is_float() || (intrinsic == Intrinsic::kAbs && type.is_int()), "{} of {}",
             IntrinsicName(intrinsic), TypeName(type));
  for (Expr a : args) {
    KILN_CHECK(a->type == type, "{} of {} and {}", IntrinsicName(intrinsic), TypeName(type),
               TypeName(a->type));
  }
  return Intern(Op::kCall, args[0]->type, static_cast<int32_t>(intrinsic), 0, args);
}

Expr ExprPool::WithArgs(Expr e, std::span<const Expr> args) {
  switch (e->op) {
    case Op::kInt:
    case Op::kFloat:
    case Op::kVar:
      return Intern(e->op, e->type, e->id, e->int_value, {});
    case Op::kNot:
      return Not(args[0]);
    case Op::kSelect:
      return Select(args[0], args[1], args[2]);
    case Op::kIf:
      return If(args[0], args[1], args[2]);
    case Op::kCast:
      return Cast(e->type, args[0]);
    case Op::kLoad:
      return Load(e->id, args, e->type);
    case Op::kCall:
      return Call(e->intrinsic(), args);
    default:
      return Binary(e->op, args[0], args[1]);
  }
}

Expr ExprPool::Import(Expr e) { return Substitute(e, {}); }

namespace {
// Small association list: bodies have tens of distinct nodes, a hash map costs more than it saves.
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
  // is_own: what is given is of the pool, so that what does not change need not be made.
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

bool ExprPool::Owns(Expr e) const {
  size_t i = e->hash & (table_.size() - 1);
  while (table_[i] != nullptr && table_[i] != e) i = (i + 1) & (table_.size() - 1);
  return table_[i] == e;
}

Expr ExprPool::Substitute(Expr e, const Substitution& names) {
  return Substituter(*this, names, Owns(e)).Run(e);
}

namespace {
bool SameNode(Expr a, Expr b) {
  return a->hash == b->hash && a->op == b->op && a->type == b->type && a->id == b->id &&
         a->int_value == b->int_value && a->num_args == b->num_args;
}

// `compared` holds the nodes of a found equal to one of b; within one pool that is one node each.
bool EqualNodes(Expr a, Expr b, std::unordered_map<Expr, Expr>& compared, int& budget) {
  if (a == b) return true;
  if (!SameNode(a, b)) return false;
  // Small expressions are compared as trees; a large one may share so much that its tree is
  // endless.
  if (--budget < 0) {
    if (auto [it, is_new] = compared.try_emplace(a, b); !is_new) return it->second == b;
  }
  for (int i = 0; i < a->num_args; ++i) {
    if (!EqualNodes(a->arg(i), b->arg(i), compared, budget)) return false;
  }
  return true;
}
}  // namespace

bool Equal(Expr a, Expr b) {
  if (a == b) return true;
  std::unordered_map<Expr, Expr> compared;
  int budget = 64;
  return EqualNodes(a, b, compared, budget);
}

bool UsesVar(Expr e, int32_t var) {
  bool found = false;
  Visit(e, [&](Expr n) { found = found || (n->op == Op::kVar && n->id == var); });
  return found;
}

bool HasLoad(Expr e) {
  bool found = false;
  Visit(e, [&](Expr n) { found = found || n->op == Op::kLoad; });
  return found;
}

std::string_view IntrinsicName(Intrinsic intrinsic) {
  return kIntrinsics[static_cast<size_t>(intrinsic)].first;
}

int IntrinsicArity(Intrinsic intrinsic) {
  return kIntrinsics[static_cast<size_t>(intrinsic)].second;
}

StatusOr<Intrinsic> ParseIntrinsic(std::string_view name) {
  for (size_t i = 0; i < kIntrinsics.size(); ++i) {
    if (kIntrinsics[i].first == name) return static_cast<Intrinsic>(i);
  }
  return InvalidArgument(
      "unknown function '{}', expected one of exp, log, sqrt, rsqrt, tanh, sigmoid, erf, pow, abs, "
      "floor, ceil, "
      "round, sin, cos",
      name);
}

}  // namespace kiln::ir
