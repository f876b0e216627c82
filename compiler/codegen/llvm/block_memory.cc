#include "compiler/codegen/llvm/block_memory.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Module.h>

#include <map>
#include <optional>

namespace kiln::codegen {
namespace {
using llvm::Instruction;
using llvm::MDNode;
using llvm::Value;

// Returns the buffer of an access. Null: not known.
const MDNode* BufferOf(const Instruction& access) {
  const MDNode* scopes = access.getMetadata(llvm::LLVMContext::MD_alias_scope);
  return scopes != nullptr && scopes->getNumOperands() == 1 ? scopes : nullptr;
}

// The bytes that a simple load or store touches.
struct Place {
  const MDNode* buffer;
  const Value* base;
  int64_t begin, end;
};

std::optional<Place> PlaceOf(const Instruction& access, const llvm::DataLayout& layout) {
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(&access);
  const auto* store = llvm::dyn_cast<llvm::StoreInst>(&access);
  if (load != nullptr ? !load->isSimple() : store == nullptr || !store->isSimple()) return {};
  const MDNode* buffer = BufferOf(access);
  if (buffer == nullptr) return {};
  const Value* pointer = llvm::getLoadStorePointerOperand(&access);
  llvm::APInt offset(64, 0);
  const Value* base = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
  const auto bytes =
      layout.getTypeStoreSize(llvm::getLoadStoreType(const_cast<Instruction*>(&access)))
          .getFixedValue();
  const int64_t begin = offset.getSExtValue();
  return Place{buffer, base, begin, begin + static_cast<int64_t>(bytes)};
}

// Facts about places. No two places with the same base overlap. Places of different bases in one
// buffer may be the same.
template <typename Fact>
class Places {
 public:
  struct Entry {
    int64_t end;
    Fact fact;
  };
  // Returns the fact about exactly this place.
  const Fact* Find(const Place& place) const {
    const auto buffer = buffers_.find(place.buffer);
    if (buffer == buffers_.end()) return nullptr;
    const auto base = buffer->second.find(place.base);
    if (base == buffer->second.end()) return nullptr;
    const auto entry = base->second.find(place.begin);
    if (entry == base->second.end() || entry->second.end != place.end) return nullptr;
    return &entry->second.fact;
  }
  // Forgets places that may overlap.
  void Forget(const Place& place) {
    const auto buffer = buffers_.find(place.buffer);
    if (buffer == buffers_.end()) return;
    for (auto base = buffer->second.begin(); base != buffer->second.end();) {
      base = base->first == place.base ? std::next(base) : buffer->second.erase(base);
    }
    if (buffer->second.empty()) return;
    Entries& entries = buffer->second.begin()->second;
    auto entry = entries.lower_bound(place.begin);
    if (entry != entries.begin() && std::prev(entry)->second.end > place.begin) --entry;
    while (entry != entries.end() && entry->first < place.end) entry = entries.erase(entry);
  }
  // No overlapping place may be known under this base.
  void Add(const Place& place, Fact fact) {
    buffers_[place.buffer][place.base].insert_or_assign(place.begin, Entry{place.end, fact});
  }
  bool HasOverlap(const Place& place) const {
    const auto buffer = buffers_.find(place.buffer);
    if (buffer == buffers_.end()) return false;
    const auto base = buffer->second.find(place.base);
    if (base == buffer->second.end()) return false;
    const auto entry = base->second.lower_bound(place.begin);
    if (entry != base->second.end() && entry->first < place.end) return true;
    return entry != base->second.begin() && std::prev(entry)->second.end > place.begin;
  }
  // Null stands for any buffer.
  void ForgetBuffer(const MDNode* buffer) {
    if (buffer == nullptr) {
      buffers_.clear();
    } else {
      buffers_.erase(buffer);
    }
  }

 private:
  using Entries = std::map<int64_t, Entry>;
  std::map<const MDNode*, std::map<const Value*, Entries>> buffers_;
};

// Replaces loads whose value is known.
bool ForwardValues(llvm::BasicBlock& block, const llvm::DataLayout& layout) {
  Places<Value*> values;
  bool changed = false;
  for (Instruction& instruction : llvm::make_early_inc_range(block)) {
    const auto place = PlaceOf(instruction, layout);
    if (!place) {
      if (instruction.mayWriteToMemory()) values.ForgetBuffer(BufferOf(instruction));
      continue;
    }
    if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      values.Forget(*place);
      values.Add(*place, store->getValueOperand());
      continue;
    }
    if (Value* const* value = values.Find(*place);
        value != nullptr && (*value)->getType() == instruction.getType()) {
      instruction.replaceAllUsesWith(*value);
      instruction.eraseFromParent();
      changed = true;
    } else if (!values.HasOverlap(*place)) {
      values.Add(*place, &instruction);
    }
  }
  return changed;
}

// Removes stores that are overwritten before any load can read them.
bool DropOverwritten(llvm::BasicBlock& block, const llvm::DataLayout& layout) {
  Places<bool> overwritten;
  bool changed = false;
  for (Instruction& instruction : llvm::make_early_inc_range(llvm::reverse(block))) {
    const auto place = PlaceOf(instruction, layout);
    if (!place) {
      if (!instruction.mayReadOrWriteMemory()) continue;
      // If a call may not return, others may see the memory as it is then.
      overwritten.ForgetBuffer(instruction.willReturn() ? BufferOf(instruction) : nullptr);
      continue;
    }
    if (llvm::isa<llvm::LoadInst>(instruction)) {
      overwritten.Forget(*place);
    } else if (overwritten.Find(*place) != nullptr) {
      instruction.eraseFromParent();
      changed = true;
    } else if (!overwritten.HasOverlap(*place)) {
      overwritten.Add(*place, true);
    }
  }
  return changed;
}
}  // namespace

llvm::PreservedAnalyses BlockMemoryPass::run(llvm::Function& function,
                                             llvm::FunctionAnalysisManager&) {
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  bool changed = false;
  for (llvm::BasicBlock& block : function) {
    changed |= ForwardValues(block, layout);
    changed |= DropOverwritten(block, layout);
  }
  if (!changed) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses preserved;
  preserved.preserveSet<llvm::CFGAnalyses>();
  return preserved;
}

}  // namespace kiln::codegen
