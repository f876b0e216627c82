// Emitter: addresses, loads and stores.
#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>
#include <map>

#include "compiler/codegen/llvm/emit.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Interval;
using arith::Linear;
using arith::Term;
using ir::Expr;
using llvm::Value;

// Lanes within this many elements per lane are fetched by one load and put in place by a shuffle.
constexpr int64_t kMaxSpanPerLane = 4;

struct Run {
  size_t first_lane;
  size_t length;
};

std::vector<Run> ContiguousRuns(const std::vector<int64_t>& offsets) {
  std::vector<Run> runs;
  for (size_t l = 0; l < offsets.size(); ++l) {
    if (l > 0 && offsets[l] == offsets[l - 1] + 1) {
      ++runs.back().length;
    } else {
      runs.push_back({l, 1});
    }
  }
  return runs;
}

Linear Shifted(Linear form, int64_t offset) {
  form.constant += offset;
  return form;
}
}  // namespace

Linear Emitter::Flatten(int32_t slot, std::span<const Expr> indices) const {
  return arith::Flatten(indices, buffer(slot).shape, known_);
}

Value* Emitter::WideIndex(Expr atom) {
  Value* v = Depends(atom) && FitsNarrow(atom) ? EvalNarrow(atom) : Eval(atom);
  if (atom->type.is_bool() || atom->type.is_unsigned())
    return builder_.CreateZExt(v, Like(v, builder_.getInt64Ty()));
  return builder_.CreateSExt(v, Like(v, builder_.getInt64Ty()));
}

Emitter::Placed Emitter::PlaceAtom(Expr atom) {
  if (atom->op == ir::Op::kVar && atom->type == ir::kIndex) {
    Value* v = values_[static_cast<size_t>(atom->id)];
    KILN_CHECK(v != nullptr, "a variable is used outside its loop");
    return {v, depths_[static_cast<size_t>(atom->id)]};
  }
  if (!IsSpeculatable(atom)) return {WideIndex(atom), -1};
  int deepest = 0;
  std::vector<int64_t> known;
  ir::Visit(atom, [&](Expr e) {
    if (e->op != ir::Op::kVar) return;
    const auto var = static_cast<size_t>(e->id);
    deepest = std::max(deepest, depths_[var]);
    if (known_[var]) known.push_back(*known_[var]);
  });
  return {heads_.Atom(deepest, atom, std::move(known), [&] { return WideIndex(atom); }), deepest};
}

Emitter::Placed Emitter::PlaceTerm(const Term& term) {
  const Placed atom = PlaceAtom(term.atom);
  if (term.coefficient == 1) return atom;
  Value* factor = builder_.getInt64(static_cast<uint64_t>(term.coefficient));
  const auto multiply = [&] { return builder_.CreateMul(atom.value, factor, "", false, true); };
  if (atom.depth < 0) return {multiply(), -1};
  return {heads_.Product(atom.depth, atom.value, factor, multiply), atom.depth};
}

// Adds outer variables first, so that a part that does not change in an inner loop is one value
// outside of it. The lane variable stands for its base.
Emitter::Placed Emitter::PlaceSum(const Linear& form) {
  std::vector<Placed> terms;
  for (const Term& term : form.terms) terms.push_back(PlaceTerm(term));
  std::stable_sort(terms.begin(), terms.end(), [](const Placed& a, const Placed& b) {
    // -1 comes last.
    return static_cast<unsigned>(a.depth) < static_cast<unsigned>(b.depth);
  });
  Placed sum{nullptr, 0};
  for (const Placed& term : terms) {
    if (sum.value == nullptr) {
      sum = term;
      continue;
    }
    Value* before = sum.value;
    const auto add = [&] { return builder_.CreateAdd(before, term.value, "", false, true); };
    if (term.depth < 0) {
      sum = {add(), -1};
      continue;
    }
    sum = {heads_.Sum(term.depth, before, term.value, add), term.depth};
  }
  return sum;
}

Value* Emitter::EmitLinear(const Linear& form, bool with_constant) {
  Value* constant = builder_.getInt64(with_constant ? static_cast<uint64_t>(form.constant) : 0);
  Value* sum = PlaceSum(form).value;
  if (sum == nullptr) return constant;
  if (!with_constant || form.constant == 0) return sum;
  return builder_.CreateAdd(sum, constant, "", false, true);
}

Value* Emitter::VectorIndex(const Linear& form) {
  Linear shared;
  shared.constant = form.constant;
  shared.overflow = form.overflow;
  Value* sum = nullptr;
  for (const Term& term : form.terms) {
    if (!Depends(term.atom)) {
      shared.terms.push_back(term);
      continue;
    }
    Value* v = Splat(WideIndex(term.atom));
    v = builder_.CreateMul(v, llvm::ConstantInt::getSigned(v->getType(), term.coefficient));
    sum = sum == nullptr ? v : builder_.CreateAdd(sum, v);
  }
  Value* base = Splat(EmitLinear(shared, true));
  return sum == nullptr ? base : builder_.CreateAdd(sum, base);
}

Value* Emitter::OffsetVector(const LaneIndex& index) {
  std::vector<uint64_t> offsets(index.offsets.begin(), index.offsets.end());
  return builder_.CreateAdd(Splat(EmitLinear(index.shared, true)),
                            llvm::ConstantDataVector::get(context_, offsets));
}

Value* Emitter::Pointer(int32_t slot, Value* index, bool in_bounds) {
  llvm::Type* type = numbers_.MemoryType(buffer(slot).type);
  return in_bounds ? builder_.CreateInBoundsGEP(type, pointer(slot), index)
                   : builder_.CreateGEP(type, pointer(slot), index);
}

// The varying part becomes one pointer per loop. The constant is added to that pointer and becomes
// part of the instruction.
Value* Emitter::Pointer(int32_t slot, const Linear& index, bool in_bounds) {
  const Placed sum = PlaceSum(index);
  if (sum.value == nullptr || sum.depth < 0 || llvm::isa<llvm::Constant>(sum.value)) {
    return Pointer(slot, EmitLinear(index, true), in_bounds);
  }
  Linear varying = index;
  varying.constant = 0;
  const Interval range = arith::RangeOf(varying, ranges_);
  const bool stays_inside = range.lo >= 0 && range.hi < buffer(slot).num_elements();
  Value* varying_pointer = heads_.Pointer(sum.depth, slot, sum.value,
                                          [&] { return Pointer(slot, sum.value, stays_inside); });
  if (index.constant == 0) return varying_pointer;
  Value* constant = builder_.getInt64(static_cast<uint64_t>(index.constant));
  llvm::Type* type = numbers_.MemoryType(buffer(slot).type);
  return in_bounds && stays_inside ? builder_.CreateInBoundsGEP(type, varying_pointer, constant)
                                   : builder_.CreateGEP(type, varying_pointer, constant);
}

llvm::Align Emitter::AlignmentOf(int32_t slot, const Linear& index) const {
  const auto bytes = static_cast<uint64_t>(buffer(slot).type.bytes());
  uint64_t bits = 64 | (static_cast<uint64_t>(index.constant) * bytes);
  for (const Term& term : index.terms) bits |= static_cast<uint64_t>(term.coefficient) * bytes;
  return llvm::Align(bits & -bits);
}

Value* Emitter::PlainLoad(int32_t slot, llvm::Type* type, Value* pointer, llvm::Align alignment) {
  return aliases_.Tag(slot,
                      builder_.CreateAlignedLoad(type, pointer, alignment, buffer(slot).name));
}

void Emitter::PlainStore(int32_t slot, Value* value, Value* pointer, llvm::Align alignment) {
  auto* store = aliases_.Tag(slot, builder_.CreateAlignedStore(value, pointer, alignment));
  if (stage_ < 0) return;
  const std::string& name = program_.stages[static_cast<size_t>(stage_)].name;
  store->setMetadata("kiln.stage",
                     llvm::MDNode::get(context_, llvm::MDString::get(context_, name)));
}

Value* Emitter::EmitLoad(int32_t slot, std::span<const Expr> indices) {
  const Linear flat = Flatten(slot, indices);
  const bool depends = std::any_of(flat.terms.begin(), flat.terms.end(),
                                   [&](const Term& t) { return Depends(t.atom); });
  const bool masked = lanes_ && lanes_->mask != nullptr;
  const Interval range = masked ? arith::RangeOf(flat, ranges_) : Interval{};
  const bool in_bounds = !masked || (range.lo >= 0 && range.hi < buffer(slot).num_elements());
  Value* v = nullptr;
  if (!depends) {
    v = in_bounds ? LoadScalar(slot, flat) : LoadGuarded(slot, flat);
  } else if (const auto index = lanes_->Split(flat, known_)) {
    v = LoadLanes(slot, *index, in_bounds);
  } else {
    v = LoadGather(slot, VectorIndex(flat));
  }
  return numbers_.FromMemory(buffer(slot).type, v);
}

Value* Emitter::LoadScalar(int32_t slot, const Linear& index) {
  return PlainLoad(slot, numbers_.MemoryType(buffer(slot).type), Pointer(slot, index, true),
                   AlignmentOf(slot, index));
}

// Loads the same element for all lanes, but only if some lane is active.
Value* Emitter::LoadGuarded(int32_t slot, const Linear& index) {
  using llvm::BasicBlock;
  BasicBlock* from = builder_.GetInsertBlock();
  BasicBlock* load = BasicBlock::Create(context_, "any", function_);
  BasicBlock* end = BasicBlock::Create(context_, "end", function_);
  builder_.CreateCondBr(builder_.CreateOrReduce(lanes_->mask), load, end);
  builder_.SetInsertPoint(load);
  Value* v = LoadScalar(slot, index);
  BasicBlock* after = builder_.GetInsertBlock();
  builder_.CreateBr(end);
  builder_.SetInsertPoint(end);
  llvm::PHINode* phi = builder_.CreatePHI(v->getType(), 2);
  phi->addIncoming(llvm::Constant::getNullValue(v->getType()), from);
  phi->addIncoming(v, after);
  return phi;
}

Value* Emitter::LoadLanes(int32_t slot, const LaneIndex& index, bool in_bounds) {
  if (index.IsUniform())
    return in_bounds ? LoadScalar(slot, index.shared) : LoadGuarded(slot, index.shared);
  if (!in_bounds) {
    if (!index.IsContiguous()) return LoadGather(slot, OffsetVector(index));
    llvm::Type* type = LaneType(numbers_.MemoryType(buffer(slot).type));
    Value* p = Pointer(slot, index.shared, false);
    return aliases_.Tag(
        slot, builder_.CreateMaskedLoad(type, p, AlignmentOf(slot, index.shared), lanes_->mask,
                                        llvm::Constant::getNullValue(type), buffer(slot).name));
  }
  return LoadRuns(slot, index);
}

Value* Emitter::LoadRuns(int32_t slot, const LaneIndex& index) {
  llvm::Type* element = numbers_.MemoryType(buffer(slot).type);
  const auto [lo, hi] = std::minmax_element(index.offsets.begin(), index.offsets.end());
  const int64_t span = *hi - *lo + 1;
  if (span <= kMaxSpanPerLane * static_cast<int64_t>(index.offsets.size())) {
    const Linear first = Shifted(index.shared, *lo);
    if (index.IsContiguous()) return LoadPieces(slot, first, span);
    Value* v = PlainLoad(slot, llvm::FixedVectorType::get(element, static_cast<unsigned>(span)),
                         Pointer(slot, first, true), AlignmentOf(slot, first));
    std::vector<int> places;
    for (int64_t offset : index.offsets) places.push_back(static_cast<int>(offset - *lo));
    return builder_.CreateShuffleVector(v, places);
  }
  Value* result = llvm::PoisonValue::get(LaneType(element));
  std::map<int64_t, Value*> loaded;
  const std::vector<Run> runs = ContiguousRuns(index.offsets);
  for (const Run& run : runs) {
    const Linear first = Shifted(index.shared, index.offsets[run.first_lane]);
    Value* p = Pointer(slot, first, true);
    if (run.length == 1) {
      Value*& scalar = loaded[first.constant];
      if (scalar == nullptr) scalar = PlainLoad(slot, element, p, AlignmentOf(slot, first));
      result = builder_.CreateInsertElement(result, scalar, static_cast<uint64_t>(run.first_lane));
      continue;
    }
    Value* part =
        PlainLoad(slot, llvm::FixedVectorType::get(element, static_cast<unsigned>(run.length)), p,
                  AlignmentOf(slot, first));
    const int n = lanes_->count, begin = static_cast<int>(run.first_lane),
              length = static_cast<int>(run.length);
    std::vector<int> widen(static_cast<size_t>(n), -1), blend(static_cast<size_t>(n));
    for (int l = 0; l < n; ++l) {
      const bool inside = l >= begin && l < begin + length;
      if (inside) widen[static_cast<size_t>(l)] = l - begin;
      blend[static_cast<size_t>(l)] = inside ? n + l : l;
    }
    result = builder_.CreateShuffleVector(result, builder_.CreateShuffleVector(part, widen), blend);
  }
  return result;
}

// A local buffer is read in vectors no wider than those that are stored to it. A wider vector would
// join registers: LLVM would keep them joined through the loops that store, and split and join them
// for each store.
Value* Emitter::LoadPieces(int32_t slot, const Linear& index, int64_t lanes) {
  const int64_t stored = stored_lanes_[static_cast<size_t>(slot)];
  const int64_t width = stored > 1 && lanes > stored && lanes % stored == 0 ? stored : lanes;
  llvm::Type* element = numbers_.MemoryType(buffer(slot).type);
  llvm::Type* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(width));
  std::vector<Value*> pieces;
  for (int64_t lane = 0; lane < lanes; lane += width) {
    const Linear first = Shifted(index, lane);
    pieces.push_back(PlainLoad(slot, type, Pointer(slot, first, true), AlignmentOf(slot, first)));
  }
  return llvm::concatenateVectors(builder_, pieces);
}

Value* Emitter::LoadGather(int32_t slot, Value* index) {
  llvm::Type* element = numbers_.MemoryType(buffer(slot).type);
  const llvm::Align alignment(static_cast<uint64_t>(buffer(slot).type.bytes()));
  if (lanes_->mask != nullptr) {
    return aliases_.Tag(slot,
                        builder_.CreateMaskedGather(
                            LaneType(element), Pointer(slot, index, false), alignment, lanes_->mask,
                            llvm::Constant::getNullValue(LaneType(element)), buffer(slot).name));
  }
  Value* result = llvm::PoisonValue::get(LaneType(element));
  for (int l = 0; l < lanes_->count; ++l) {
    Value* p = Pointer(slot, builder_.CreateExtractElement(index, static_cast<uint64_t>(l)), true);
    result = builder_.CreateInsertElement(result, PlainLoad(slot, element, p, alignment),
                                          static_cast<uint64_t>(l));
  }
  return result;
}

void Emitter::EmitStore(ir::Stmt store) {
  const int32_t slot = store->slot;
  stage_ = store->stage;
  Value* value = numbers_.ToMemory(buffer(slot).type, Eval(store->value()));
  const Linear flat = Flatten(slot, store->indices());
  if (!lanes_) {
    PlainStore(slot, value, Pointer(slot, flat, true), AlignmentOf(slot, flat));
    return;
  }
  value = Splat(value);
  const Interval range = arith::RangeOf(flat, ranges_);
  const bool in_bounds = range.lo >= 0 && range.hi < buffer(slot).num_elements();
  if (const auto index = lanes_->Split(flat, known_)) {
    StoreLanes(slot, *index, value, in_bounds);
  } else {
    StoreElements(slot, VectorIndex(flat), value);
  }
}

void Emitter::StoreLanes(int32_t slot, const LaneIndex& index, Value* value, bool in_bounds) {
  const std::vector<Run> runs = ContiguousRuns(index.offsets);
  Value* mask = lanes_->mask;
  if (mask != nullptr && index.IsContiguous()) {
    const llvm::Align alignment = AlignmentOf(slot, index.shared);
    if (in_bounds && buffer(slot).scope == ir::Scope::kLocal) {
      // No other thread sees a local buffer. Writing the old values back keeps it promotable to
      // registers.
      Value* p = Pointer(slot, index.shared, true);
      Value* old = PlainLoad(slot, value->getType(), p, alignment);
      PlainStore(slot, builder_.CreateSelect(mask, value, old), p, alignment);
    } else {
      Value* p = Pointer(slot, index.shared, false);
      aliases_.Tag(slot, builder_.CreateMaskedStore(value, p, alignment, mask));
    }
    return;
  }
  if (mask != nullptr) {
    StoreElements(slot, OffsetVector(index), value);
    return;
  }
  for (const Run& run : runs) {
    const Linear first = Shifted(index.shared, index.offsets[run.first_lane]);
    Value* p = Pointer(slot, first, true);
    Value* part = value;
    if (run.length == 1) {
      part = builder_.CreateExtractElement(value, static_cast<uint64_t>(run.first_lane));
    } else if (run.length != index.offsets.size()) {
      std::vector<int> places;
      for (size_t l = 0; l < run.length; ++l)
        places.push_back(static_cast<int>(run.first_lane + l));
      part = builder_.CreateShuffleVector(value, places);
    }
    PlainStore(slot, part, p, AlignmentOf(slot, first));
  }
}

// Stores in lane order, which a scatter keeps too.
void Emitter::StoreElements(int32_t slot, Value* index, Value* value) {
  const llvm::Align alignment(static_cast<uint64_t>(buffer(slot).type.bytes()));
  if (lanes_->mask != nullptr) {
    aliases_.Tag(slot, builder_.CreateMaskedScatter(value, Pointer(slot, index, false), alignment,
                                                    lanes_->mask));
    return;
  }
  for (int l = 0; l < lanes_->count; ++l) {
    Value* p = Pointer(slot, builder_.CreateExtractElement(index, static_cast<uint64_t>(l)), true);
    PlainStore(slot, builder_.CreateExtractElement(value, static_cast<uint64_t>(l)), p, alignment);
  }
}

}  // namespace kiln::codegen
