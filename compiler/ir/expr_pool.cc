// Memory of a pool's nodes, and the table by which equal nodes are found.
#include <algorithm>

#include "compiler/ir/expr.h"

namespace kiln::ir {
namespace {

constexpr size_t kBlockBytes = 16 << 10;
// Most pools hold the body of one operator. The first allocations of a pool are so small that the
// allocator keeps memory for them at hand.
constexpr size_t kFirstBlockBytes = 1000, kFirstSlots = 64;

uint64_t Mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdULL;
  return h ^ (h >> 32);
}

// Blocks of destroyed pools, kept for the next pool of the same thread. A search makes and drops a
// pool for each program it looks at. If the allocator gets back that much memory at once, it merges
// all its small free chunks, and the next allocations are slow.
class SpareBlocks {
 public:
  static std::unique_ptr<char[]> Take() {
    if (ended_ || OfThread().blocks_.empty()) return nullptr;
    std::unique_ptr<char[]> block = std::move(OfThread().blocks_.back());
    OfThread().blocks_.pop_back();
    return block;
  }

  // The block is at least kBlockBytes long.
  static void Give([[maybe_unused]] std::unique_ptr<char[]> block) {
// With a spare block the sanitizer would no longer see uses of the nodes of a destroyed pool.
#ifndef __SANITIZE_ADDRESS__
    if (!ended_ && OfThread().blocks_.size() < kMax) OfThread().blocks_.push_back(std::move(block));
#endif
  }

  ~SpareBlocks() { ended_ = true; }

 private:
  static constexpr size_t kMax = 32;

  static SpareBlocks& OfThread() {
    thread_local SpareBlocks blocks;
    return blocks;
  }

  // A pool may be destroyed after the spare blocks of its thread at the end of the thread.
  static thread_local bool ended_;
  std::vector<std::unique_ptr<char[]>> blocks_;
};

thread_local bool SpareBlocks::ended_ = false;

}  // namespace

ExprPool::ExprPool() : table_(kFirstSlots, nullptr) {}

ExprPool::~ExprPool() {
  // The first block is too short for another pool, unless the pool's first allocation was large.
  for (size_t i = 1; i < blocks_.size(); ++i) SpareBlocks::Give(std::move(blocks_[i]));
}

void* ExprPool::Allocate(size_t size) {
  size = (size + 7) & ~size_t{7};
  if (next_ == nullptr || static_cast<size_t>(end_ - next_) < size) {
    const size_t block = std::max(size, blocks_.empty() ? kFirstBlockBytes : kBlockBytes);
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

bool ExprPool::Owns(Expr e) const {
  size_t i = e->hash & (table_.size() - 1);
  while (table_[i] != nullptr && table_[i] != e) i = (i + 1) & (table_.size() - 1);
  return table_[i] == e;
}

}  // namespace kiln::ir
