#include "compiler/codegen/llvm/transpose_loads.h"

#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace kiln::codegen {
namespace {
using llvm::InsertElementInst;
using llvm::Instruction;
using llvm::LoadInst;
using llvm::MDNode;
using llvm::Value;

constexpr int kColumns = 4;
constexpr int64_t kElementBytes = 4;

// A vector whose lanes are loaded one by one, at base + offset + distances[lane].
struct Gather {
  // The last insert.
  Instruction* vector;
  // The first of the loads in the order of the block.
  LoadInst* first;
  const MDNode* buffer;
  Value* base;
  // Offset of lane 0.
  int64_t offset;
  // Distances from lane 0.
  std::vector<int64_t> distances;
  // Alignment of the least aligned element.
  llvm::Align alignment;

  llvm::FixedVectorType* type() const {
    return llvm::cast<llvm::FixedVectorType>(vector->getType());
  }
};

// Returns the loads of the lanes if `last` ends a complete chain of inserts. Empty: it does not.
std::vector<LoadInst*> LoadsOfChain(InsertElementInst& last) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(last.getType());
  if (type == nullptr || type->getScalarSizeInBits() != 8 * kElementBytes) return {};
  std::vector<LoadInst*> loads(type->getNumElements());
  Value* vector = &last;
  size_t lanes = 0;
  while (auto* insert = llvm::dyn_cast<InsertElementInst>(vector)) {
    auto* lane = llvm::dyn_cast<llvm::ConstantInt>(insert->getOperand(2));
    auto* load = llvm::dyn_cast<LoadInst>(insert->getOperand(1));
    if (lane == nullptr || lane->getZExtValue() >= loads.size() || load == nullptr ||
        !load->isSimple() || load->getParent() != last.getParent() ||
        (insert != &last && !insert->hasOneUse()) || loads[lane->getZExtValue()] != nullptr) {
      return {};
    }
    loads[lane->getZExtValue()] = load;
    ++lanes;
    vector = insert->getOperand(0);
  }
  if (!llvm::isa<llvm::UndefValue>(vector) || lanes != loads.size()) return {};
  return loads;
}

const MDNode* BufferOf(const Instruction& access) {
  const MDNode* scopes = access.getMetadata(llvm::LLVMContext::MD_alias_scope);
  return scopes != nullptr && scopes->getNumOperands() == 1 ? scopes : nullptr;
}

std::optional<Gather> GatherOf(InsertElementInst& last, const llvm::DataLayout& layout) {
  // The chain goes on.
  if (last.hasOneUse() && llvm::isa<InsertElementInst>(last.user_back())) return {};
  const std::vector<LoadInst*> loads = LoadsOfChain(last);
  if (loads.size() < kColumns || loads.size() % kColumns != 0) return {};
  Gather gather{.vector = &last,
                .first = loads[0],
                .buffer = BufferOf(*loads[0]),
                .base = nullptr,
                .offset = 0,
                .distances = {},
                .alignment = loads[0]->getAlign()};
  if (gather.buffer == nullptr) return {};
  for (LoadInst* load : loads) {
    llvm::APInt offset(64, 0);
    Value* base =
        load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset,
                                                                     /*non-inbounds*/ true);
    if (gather.base == nullptr) {
      gather.base = base;
      gather.offset = offset.getSExtValue();
    }
    if (base != gather.base || BufferOf(*load) != gather.buffer) return {};
    gather.distances.push_back(offset.getSExtValue() - gather.offset);
    gather.alignment = std::min(gather.alignment, load->getAlign());
    if (load->comesBefore(gather.first)) gather.first = load;
  }
  return gather;
}

class Transposer {
 public:
  Transposer(llvm::BasicBlock& block, llvm::ScalarEvolution& evolution)
      : block_(block), evolution_(evolution) {}

  bool Run() {
    using Kind = std::pair<const MDNode*, std::vector<int64_t>>;
    std::map<Kind, std::vector<Gather>> kinds;
    const llvm::DataLayout& layout = block_.getModule()->getDataLayout();
    for (Instruction& instruction : block_) {
      auto* insert = llvm::dyn_cast<InsertElementInst>(&instruction);
      if (insert == nullptr) continue;
      if (auto gather = GatherOf(*insert, layout)) {
        kinds[{gather->buffer, gather->distances}].push_back(*std::move(gather));
      }
    }
    bool changed = false;
    for (auto& [kind, gathers] : kinds) {
      if (gathers.size() >= kColumns) changed |= TransposeNeighbours(gathers);
    }
    for (llvm::WeakTrackingVH& handle : dead_) {
      if (handle) llvm::RecursivelyDeleteTriviallyDeadInstructions(handle);
    }
    return changed;
  }

 private:
  // The same elements may be gathered several times.
  using Same = std::vector<const Gather*>;
  using Columns = std::array<Same, kColumns>;

  // Takes four neighbours at a time, from the lowest address on.
  bool TransposeNeighbours(const std::vector<Gather>& gathers) {
    // Indexed by the distance from the first gather.
    std::map<int64_t, Same> at;
    for (const Gather& gather : gathers) {
      if (const auto distance = Distance(gathers[0], gather)) at[*distance].push_back(&gather);
    }
    bool changed = false;
    for (auto first = at.begin(); first != at.end();) {
      Columns columns;
      int found = 0;
      auto next = first;
      for (; found < kColumns && next != at.end() &&
             next->first == first->first + found * kElementBytes;
           ++found, ++next) {
        columns[static_cast<size_t>(found)] = next->second;
      }
      if (found == kColumns && MayMove(columns)) {
        Transpose(columns);
        changed = true;
        first = next;
      } else {
        ++first;
      }
    }
    return changed;
  }

  std::optional<int64_t> Distance(const Gather& from, const Gather& to) {
    if (from.base == to.base) return to.offset - from.offset;
    const auto* difference = llvm::dyn_cast<llvm::SCEVConstant>(
        evolution_.getMinusSCEV(evolution_.getSCEV(to.base), evolution_.getSCEV(from.base)));
    if (difference == nullptr) return std::nullopt;
    return difference->getAPInt().getSExtValue() + to.offset - from.offset;
  }

  // Returns the gather that is loaded first, and the number of its column.
  static std::pair<const Gather*, int> Earliest(const Columns& columns) {
    std::pair<const Gather*, int> earliest = {columns[0][0], 0};
    for (int c = 0; c < kColumns; ++c) {
      for (const Gather* gather : columns[static_cast<size_t>(c)]) {
        if (gather->first->comesBefore(earliest.first->first)) earliest = {gather, c};
      }
    }
    return earliest;
  }

  // All columns are loaded where the first one is, so no instruction between may store to the
  // buffer.
  static bool MayMove(const Columns& columns) {
    const Gather& earliest = *Earliest(columns).first;
    const Instruction* last = columns[0][0]->vector;
    for (const Same& column : columns) {
      for (const Gather* gather : column) {
        if (last->comesBefore(gather->vector)) last = gather->vector;
      }
    }
    for (const Instruction* i = earliest.first; i != last; i = i->getNextNode()) {
      if (!i->mayWriteToMemory()) continue;
      const MDNode* buffer = BufferOf(*i);
      if (buffer == nullptr || buffer == earliest.buffer) return false;
    }
    return true;
  }

  void Transpose(const Columns& columns) {
    const auto [earliest, column] = Earliest(columns);
    const int64_t begin = earliest->offset - column * kElementBytes;
    llvm::IRBuilder<> builder(earliest->first);
    const auto lanes = static_cast<unsigned>(earliest->distances.size());
    std::array<std::vector<Value*>, kColumns> parts;
    for (unsigned lane = 0; lane < lanes;) {
      unsigned count = 16;
      while (count > lanes - lane) count /= 2;
      const auto transposed = TransposeLanes(builder, *earliest, begin, lane, count);
      for (size_t c = 0; c < kColumns; ++c) parts[c].push_back(transposed[c]);
      lane += count;
    }
    for (size_t c = 0; c < kColumns; ++c) {
      Value* whole = Concatenate(builder, parts[c]);
      for (const Gather* gather : columns[c]) {
        gather->vector->replaceAllUsesWith(whole);
        dead_.emplace_back(gather->vector);
      }
    }
  }

  // Returns lanes [lane, lane + count) of the four columns; count is 4, 8 or 16. In each group of
  // four rows, row m goes into register m. Each quarter of the registers is then a matrix of four
  // by four.
  std::array<Value*, kColumns> TransposeLanes(llvm::IRBuilder<>& builder, const Gather& gather,
                                              int64_t begin, unsigned lane, unsigned count) {
    std::array<Value*, kColumns> rows;
    for (unsigned m = 0; m < kColumns; ++m) {
      std::vector<Value*> pieces;
      for (unsigned l = lane + m; l < lane + count; l += kColumns) {
        pieces.push_back(LoadRow(builder, gather, begin + gather.distances[l]));
      }
      rows[m] = Concatenate(builder, pieces);
    }
    const auto mix = [&](Value* a, Value* b, std::array<int, kColumns> places) {
      // Places 0 to 3 are those of a, 4 to 7 those of b.
      std::vector<int> mask;
      for (int quarter = 0; quarter < static_cast<int>(count); quarter += kColumns) {
        for (int p : places) {
          mask.push_back(p < kColumns ? quarter + p
                                      : static_cast<int>(count) + quarter + p - kColumns);
        }
      }
      return builder.CreateShuffleVector(a, b, mask);
    };
    Value* low_even = mix(rows[0], rows[1], {0, 4, 1, 5});
    Value* high_even = mix(rows[0], rows[1], {2, 6, 3, 7});
    Value* low_odd = mix(rows[2], rows[3], {0, 4, 1, 5});
    Value* high_odd = mix(rows[2], rows[3], {2, 6, 3, 7});
    return {mix(low_even, low_odd, {0, 1, 4, 5}), mix(low_even, low_odd, {2, 3, 6, 7}),
            mix(high_even, high_odd, {0, 1, 4, 5}), mix(high_even, high_odd, {2, 3, 6, 7})};
  }

  static Value* LoadRow(llvm::IRBuilder<>& builder, const Gather& gather, int64_t offset) {
    auto* type = llvm::FixedVectorType::get(gather.type()->getElementType(), kColumns);
    Value* pointer = builder.CreateGEP(builder.getInt8Ty(), gather.base,
                                       builder.getInt64(static_cast<uint64_t>(offset)));
    LoadInst* load = builder.CreateAlignedLoad(type, pointer, gather.alignment);
    load->copyMetadata(*gather.first,
                       {llvm::LLVMContext::MD_alias_scope, llvm::LLVMContext::MD_noalias});
    return load;
  }

  // Concatenates in halves, so that registers are put together from registers.
  static Value* Concatenate(llvm::IRBuilder<>& builder, const std::vector<Value*>& parts) {
    if (parts.size() == 1) return parts[0];
    const auto middle = parts.begin() + static_cast<ptrdiff_t>((parts.size() + 1) / 2);
    Value* a = Concatenate(builder, {parts.begin(), middle});
    Value* b = Concatenate(builder, {middle, parts.end()});
    const auto lanes = [](Value* v) {
      return static_cast<int>(llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements());
    };
    const int n = lanes(a), m = lanes(b);
    std::vector<int> all, widen;
    for (int l = 0; l < n; ++l) widen.push_back(l < m ? l : -1);
    for (int l = 0; l < n + m; ++l) all.push_back(l);
    if (m < n) b = builder.CreateShuffleVector(b, widen);
    return builder.CreateShuffleVector(a, b, all);
  }

  llvm::BasicBlock& block_;
  llvm::ScalarEvolution& evolution_;
  std::vector<llvm::WeakTrackingVH> dead_;
};

bool HasInserts(const llvm::Function& function) {
  for (const llvm::BasicBlock& block : function) {
    for (const Instruction& instruction : block) {
      if (llvm::isa<InsertElementInst>(instruction)) return true;
    }
  }
  return false;
}
}  // namespace

llvm::PreservedAnalyses TransposeLoadsPass::run(llvm::Function& function,
                                                llvm::FunctionAnalysisManager& analyses) {
  if (!HasInserts(function)) return llvm::PreservedAnalyses::all();
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  bool changed = false;
  for (llvm::BasicBlock& block : function) changed |= Transposer(block, evolution).Run();
  if (!changed) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses preserved;
  preserved.preserveSet<llvm::CFGAnalyses>();
  return preserved;
}

}  // namespace kiln::codegen
