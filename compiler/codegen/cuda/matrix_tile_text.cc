#include "compiler/codegen/cuda/matrix_tile_text.h"

#include <algorithm>

#include "compiler/codegen/cuda/buffer_use.h"
#include "compiler/codegen/cuda/computed_factor.h"
#include "compiler/instructions/matrix_unit.h"

namespace kiln::codegen {
namespace {
using instructions::kWarpgroupThreads;
using instructions::kWarpgroupWarps;
using instructions::kWarpThreads;
using Reading = MatrixOperand::Reading;

// The function that loads tiles by ldmatrix.
std::string_view LoadName(bool is_transposed) {
  return is_transposed ? "load_tiles_transposed" : "load_tiles";
}

}  // namespace

void CudaMatrixTiles::Emit(const MatrixTile& tile, int64_t copies_under_way) {
  order_ = tile.order;
  MatrixPlaces places(program_, swizzles_, scope_, tile);
  const Placed of = {tile, places};
  spare_ = tile.rows ? SpareBuffers(tile, exprs_, copies_under_way) : 0;
  const bool is_of_units = tile.rows || (tile.is_warpgroup && tile.is_held());
  if (!is_of_units) preamble_.matrix_units.insert(tile.unit);
  const std::string thread = ThreadName(tile);
  scope_.SetName(places.lane(), names_.Unique("lane"));
  const std::string lane =
      fmt::format("const int {} = {} % {};", scope_.name(places.lane()), thread, kWarpThreads);
  blocks_.Braced("{", [&] {
    if (is_of_units) return EmitWarpgroupSteps(of);
    blocks_.Bound(places.lane(), lane, [&] {
      if (tile.is_warpgroup) return EmitWarpgroupSteps(of);
      if (!tile.has_warps() || tile.is_of_one_warp) return EmitSteps(of);
      scope_.SetName(places.warp(), names_.Unique("warp"));
      const std::string warp =
          fmt::format("const int {} = {} / {};", scope_.name(places.warp()), thread, kWarpThreads);
      blocks_.Bound(places.warp(), warp, [&] { EmitSteps(of); });
    });
  });
  places.Reset();
}

// Returns the number of the thread on the GPU, which may be another one than in the program.
std::string CudaMatrixTiles::ThreadName(const MatrixTile& tile) const {
  return tile.order.is_changed() ? "static_cast<int>(threadIdx.x)" : scope_.name(tile.thread);
}

void CudaMatrixTiles::EmitSteps(const Placed& of) {
  const MatrixTile& tile = of.tile;
  const auto emit = [&](auto& self, size_t depth) -> void {
    if (depth < tile.around.size()) {
      const ir::Stmt loop = tile.around[depth];
      if (loop->extent == 1) return self(self, depth + 1);
      return blocks_.Loop(loop->var, loop->extent, 0, [&] { self(self, depth + 1); });
    }
    if (tile.is_held()) return EmitKnownSteps(of);
    if (tile.steps() == 1) return EmitStep(of);
    scope_.SetName(of.places.step(), names_.Unique(scope_.name(tile.k_loop->var) + "_step"));
    blocks_.Loop(of.places.step(), tile.steps(), tile.steps() <= 8 ? tile.steps() : 0,
                 [&] { EmitStep(of); });
  };
  emit(emit, 0);
}

// Registers have no addresses.
void CudaMatrixTiles::EmitKnownSteps(const Placed& of) {
  for (int64_t step = 0; step < of.tile.steps(); ++step) {
    of.places.SetStep(step);
    blocks_.Braced("{", [&] { EmitStep(of); });
  }
}

std::string CudaMatrixTiles::Row(const Placed& of, const MatrixOperand& operand, size_t position) {
  std::string text =
      "&" +
      exprs_.Element(operand.load->id, {.offset = of.places.RowOf(operand, position), .block = {}});
  of.places.Reset();
  return text;
}

std::string CudaMatrixTiles::Element(const Placed& of, const MatrixOperand& operand,
                                     size_t position, int part) {
  std::string text = exprs_.Element(
      operand.load->id, {.offset = of.places.ElementOf(operand, position, part), .block = {}});
  of.places.Reset();
  return fmt::format("__float_as_uint({})", text);
}

std::string CudaMatrixTiles::Sum(const MatrixTile& tile, size_t row, size_t column) {
  return exprs_.Element(tile.store->slot,
                        {.offset = arith::Constant(tile.sums[row][column]), .block = {}});
}

// Each two rows are a fragment of four registers.
void CudaMatrixTiles::LoadFirst(const Placed& of, const std::string& name) {
  const MatrixOperand& a = of.tile.a;
  if (a.reading == Reading::kHeld) return TakeHeld(of, name);
  if (a.reading == Reading::kComputed) return Compute(of, name);
  for (size_t i = 0; i < a.elements.size() / 2; ++i) {
    if (a.reading == Reading::kElements) {
      for (int part = 0; part < 4; ++part)
        blocks_.Line(fmt::format("{}[{}][{}] = {};", name, i, part, Element(of, a, 2 * i, part)));
      continue;
    }
    blocks_.Line(fmt::format("{0}({1}[{2}][0], {1}[{2}][1], {1}[{2}][2], {1}[{2}][3], {3});",
                             LoadName(a.reading != Reading::kRows), name, i, Row(of, a, 2 * i)));
    if (a.reading != Reading::kPairs) continue;
    for (const int half : {0, 2})
      Unzip(of, fmt::format("{}[{}][{}]", name, i, half),
            fmt::format("{}[{}][{}]", name, i, half + 1));
  }
}

// A register has two neighbours of 8 terms of a row. Both rows of a fragment come first.
void CudaMatrixTiles::TakeHeld(const Placed& of, const std::string& name) {
  constexpr int64_t kHalf = 8;
  const MatrixTile& tile = of.tile;
  const lower::HeldPairs::Read& held = *held_.pairs.at(tile.a.load->id).ReadBy(tile.store);
  for (size_t i = 0; i < tile.a.elements.size() / 2; ++i) {
    for (int part = 0; part < 4; ++part) {
      of.places.SetElement(tile.a.elements[2 * i + static_cast<size_t>(part % 2)]);
      std::vector<int64_t> rows;
      for (const int32_t var : held.row_vars) rows.push_back(scope_.value(var).constant);
      const int64_t term = of.places.known_step() * tile.depth() + part / 2 * kHalf;
      blocks_.Line(fmt::format("{}[{}][{}] = {}[{}];", name, i, part,
                               exprs_.buffer_name(tile.a.load->id),
                               held.register_of.at({rows, term})));
    }
  }
  of.places.Reset();
}

void CudaMatrixTiles::Compute(const Placed& of, const std::string& name) {
  CudaComputedFactor(of.tile, of.places, scope_, exprs_, blocks_, names_, preamble_).Emit(name);
}

void CudaMatrixTiles::Unzip(const Placed& of, const std::string& first, const std::string& second) {
  preamble_.unzips_bytes = true;
  blocks_.Line(
      fmt::format("unzip_bytes({}, {}, {});", first, second, scope_.name(of.places.lane())));
}

// Each four columns are two fragments, of the even and of the odd ones.
void CudaMatrixTiles::LoadSecondPairs(const Placed& of, const std::string& name) {
  const MatrixOperand& b = of.tile.b;
  for (size_t j = 0; j < b.elements.size() / 2; j += 2) {
    blocks_.Line(fmt::format("{0}({1}[{2}][0], {1}[{3}][0], {1}[{2}][1], {1}[{3}][1], {4});",
                             LoadName(true), name, j, j + 1, Row(of, b, 2 * j)));
    for (const int half : {0, 1})
      Unzip(of, fmt::format("{}[{}][{}]", name, j, half),
            fmt::format("{}[{}][{}]", name, j + 1, half));
  }
}

std::pair<size_t, size_t> CudaMatrixTiles::ColumnsOf(const MatrixTile& tile, size_t fragment) {
  if (tile.b.reading == Reading::kComputed) {
    const size_t half = tile.b.group / 2, even = fragment / half * tile.b.group + fragment % half;
    return {even, even + half};
  }
  if (tile.b.reading != Reading::kPairs) return {2 * fragment, 2 * fragment + 1};
  const size_t first = fragment / 2 * 4 + fragment % 2;
  return {first, first + 2};
}

// Each two columns are a fragment of two registers.
void CudaMatrixTiles::LoadSecond(const Placed& of, const std::string& name) {
  const MatrixOperand& b = of.tile.b;
  if (b.reading == Reading::kPairs) return LoadSecondPairs(of, name);
  if (b.reading == Reading::kComputed) return Compute(of, name);
  const size_t columns = b.elements.size() / 2;
  if (b.reading == Reading::kElements) {
    for (size_t j = 0; j < columns; ++j) {
      for (int part = 0; part < 2; ++part)
        blocks_.Line(fmt::format("{}[{}][{}] = {};", name, j, part, Element(of, b, 2 * j, part)));
    }
    return;
  }
  const std::string_view load = LoadName(b.reading == Reading::kColumns);
  for (size_t j = 0; j < columns;) {
    // 8 columns more, a constant away, are read at once with these.
    const bool is_pair = b.next[2 * j] != 0;
    if (is_pair) {
      blocks_.Line(fmt::format("{0}({1}[{2}][0], {1}[{2}][1], {1}[{3}][0], {1}[{3}][1], {4});",
                               load, name, j, j + 1, Row(of, b, 2 * j)));
    } else {
      blocks_.Line(
          fmt::format("{0}({1}[{2}][0], {1}[{2}][1], {3});", load, name, j, Row(of, b, 2 * j)));
    }
    j += is_pair ? 2 : 1;
  }
}

void CudaMatrixTiles::EmitStep(const Placed& of) {
  const MatrixTile& tile = of.tile;
  const std::string a = names_.Unique(exprs_.buffer_name(tile.a.load->id) + "_tiles"),
                    b = names_.Unique(exprs_.buffer_name(tile.b.load->id) + "_tiles");
  const size_t rows = tile.a.elements.size() / 2, columns = tile.b.elements.size() / 2;
  blocks_.Line(fmt::format("unsigned {}[{}][4], {}[{}][2];", a, rows, b, columns));
  LoadFirst(of, a);
  LoadSecond(of, b);
  if (tile.unit->rounds) {
    for (const std::string& tiles : {a, b}) blocks_.Line(fmt::format("round_tiles({});", tiles));
  }
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      const auto [first, second] = ColumnsOf(tile, j);
      blocks_.Line(fmt::format("multiply_tiles_{}({}, {}, {}, {}, {}[{}], {}[{}]);",
                               tile.unit->name, Sum(tile, 2 * i, first), Sum(tile, 2 * i, second),
                               Sum(tile, 2 * i + 1, first), Sum(tile, 2 * i + 1, second), a, i, b,
                               j));
    }
  }
}

// ---- of four warps together

// Returns the number of buffers of a ring, which are filled ahead of their use, that no copy under
// way fills and no thread reads.
int64_t CudaMatrixTiles::SpareBuffers(const MatrixTile& tile, const CudaExprs& exprs,
                                      int64_t copies_under_way) {
  if (copies_under_way == kNoCopies) return 0;
  int64_t spare = std::numeric_limits<int64_t>::max();
  for (const ir::Expr load : {tile.a.load, tile.b.load}) {
    const int64_t ring = exprs.buffer(load->id).shape[0];
    const ir::Expr which = load->arg(0);
    if (which->op != ir::Op::kFloorMod || !which->arg(1)->is_const_int(ring)) return 0;
    // One is read, and one is filled behind this tile.
    spare = std::min(spare, ring - 2 - copies_under_way);
  }
  return std::max<int64_t>(0, spare);
}

// The text refers to the tile, which must outlive it.
WarpgroupText CudaMatrixTiles::TextOf(const Placed& of) {
  const MatrixTile& tile = of.tile;
  WarpgroupText text;
  for (const ir::Stmt loop : tile.around) {
    if (loop->extent > 1) text.loops.emplace_back(loop->var, loop->extent);
  }
  if (tile.is_held()) {
    text.held_steps = tile.steps();
    text.set_step = [&of](int64_t step) { of.places.SetStep(step); };
  } else if (tile.steps() > 1) {
    scope_.SetName(of.places.step(), names_.Unique(scope_.name(tile.k_loop->var) + "_step"));
    text.loops.emplace_back(of.places.step(), tile.steps());
  }
  const auto start = [this](ir::Expr load, const arith::Linear& offset) {
    return exprs_.LineElement(load->id, {.offset = offset, .block = {}});
  };
  for (size_t i = 0; i < tile.sums.size(); i += 2) {
    text.rows.push_back({Sum(tile, i, 0), Sum(tile, i + 1, 0)});
    if (!tile.rows) continue;
    text.rows.back().start = [&of, start, i] {
      return start(of.tile.a.load, of.places.StartOfRows(i));
    };
  }
  text.sums = exprs_.buffer_name(tile.store->slot);
  text.sums_apart = tile.sums_apart;
  text.unit = tile.unit;
  text.factor = tile.columns;
  text.first_factor = tile.rows;
  text.load = [this, &of](const std::string& tiles) {
    LoadFirst(of, tiles);
    if (of.tile.unit->rounds) blocks_.Line(fmt::format("round_tiles({});", tiles));
  };
  text.start = [&of, start] { return start(of.tile.b.load, of.places.StartOfColumns()); };
  return text;
}

void CudaMatrixTiles::EmitWarpgroupSteps(const Placed& of) {
  const MatrixTile& tile = of.tile;
  const bool is_held = tile.is_held();
  const WarpgroupText text = TextOf(of);
  preamble_.warpgroup_units.insert({.unit = tile.unit,
                                    .is_first_shared = tile.rows.has_value(),
                                    .columns = tile.columns.columns});
  const std::string tiles = names_.Unique(exprs_.buffer_name(tile.a.load->id) + "_tiles"),
                    thread = ThreadName(tile);
  const auto emit = [&] {
    if (!EmitWarpgroup(text, tiles, blocks_)) {
      if (when_read_) when_read_(tile.b.load->id);
      return;
    }
    under_way_.push_back({.sums = tile.store->slot,
                          .held = is_held ? tile.a.load->id : -1,
                          .second = tile.b.load->id,
                          .is_committed_once = is_held || tile.rows,
                          .iterations = spare_});
  };
  // The units read the same for all warps.
  if (is_held) return emit();
  const auto emit_of_warpgroup = [&] {
    if (!tile.has_warps()) return emit();
    scope_.SetName(of.places.warp(), names_.Unique("warpgroup"));
    const std::string warpgroup = fmt::format(
        "const int {} = {} / {};", scope_.name(of.places.warp()), thread, kWarpgroupThreads);
    blocks_.Bound(of.places.warp(), warpgroup, emit);
  };
  if (tile.rows) return emit_of_warpgroup();
  scope_.SetName(of.places.member(), names_.Unique("warp"));
  const std::string member =
      fmt::format("const int {} = {} / {} % {};", scope_.name(of.places.member()), thread,
                  kWarpThreads, kWarpgroupWarps);
  blocks_.Bound(of.places.member(), member, emit_of_warpgroup);
}

void CudaMatrixTiles::Wait(size_t kept) {
  if (under_way_.size() <= kept) return;
  // Each tile has a group of products in each iteration that need not be waited for.
  const int64_t committed =
      kept == 0 && RunOn() ? under_way_[0].iterations * std::ssize(under_way_) : 0;
  const std::vector<std::string> sums = SumsFrom(kept, under_way_.size());
  ring_sums_ = committed > 0 ? sums : std::vector<std::string>();
  EmitWait(sums, committed, committed == 0 ? reading_ : SumReading::kNone, blocks_);
  TellRead(kept, under_way_.size());
  under_way_.resize(kept);
}

// Are all tiles under way those of one iteration of a ring with buffers to spare? Several have one
// group of products each.
bool CudaMatrixTiles::RunOn() const {
  if (under_way_.size() == 1) return under_way_[0].iterations > 0;
  return std::ranges::all_of(under_way_, [&](const UnderWay& tile) {
    return tile.is_committed_once && tile.iterations > 0 &&
           tile.iterations == under_way_[0].iterations;
  });
}

std::vector<std::string> CudaMatrixTiles::SumsFrom(size_t first, size_t end) const {
  std::vector<std::string> sums;
  for (size_t i = first; i < end; ++i) sums.push_back(exprs_.buffer_name(under_way_[i].sums));
  return sums;
}

void CudaMatrixTiles::TellRead(size_t first, size_t end) const {
  if (!when_read_) return;
  for (size_t i = first; i < end; ++i) when_read_(under_way_[i].second);
}

// Products run on beside copies, and beside what threads do with other registers alone.
void CudaMatrixTiles::WaitBefore(ir::Stmt next, size_t kept) {
  if (under_way_.size() <= kept || IsCopies(next)) return;
  // The next sum of the same iteration.
  const auto is_used = [&](const UnderWay& tile) {
    return UsesBuffer(next, tile.sums) || UsesBuffer(next, tile.held);
  };
  if (kept == 0 && RunOn() && IsTile(next) && std::ranges::none_of(under_way_, is_used)) return;
  const auto is_once = [](const UnderWay& tile) {
    return tile.is_committed_once && tile.iterations == 0;
  };
  if (!MayRunBeside(next) || !std::ranges::all_of(under_way_, is_once)) return Wait(kept);
  size_t needed = under_way_.size();
  while (needed > kept && !UsesBuffer(next, under_way_[needed - 1].sums) &&
         !UsesBuffer(next, under_way_[needed - 1].held))
    --needed;
  if (needed == kept) return;
  EmitWait(SumsFrom(kept, needed), std::ssize(under_way_) - static_cast<int64_t>(needed), reading_,
           blocks_);
  TellRead(kept, needed);
  under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(kept),
                   under_way_.begin() + static_cast<std::ptrdiff_t>(needed));
}

// Is it computed by matrix units?
bool CudaMatrixTiles::IsTile(ir::Stmt stmt) const {
  if (stmt->kind == ir::StmtKind::kStore)
    return instructions::AddedBy(stmt) != nullptr && instructions::UsesMatrixUnits(program_, stmt);
  return stmt->num_children > 0 &&
         std::ranges::all_of(stmt->children(), [&](ir::Stmt s) { return IsTile(s); });
}

// Does it change nothing that is shared, and meet no other threads?
bool CudaMatrixTiles::MayRunBeside(ir::Stmt stmt) const {
  if (stmt->kind == ir::StmtKind::kBarrier) return stmt->is_of_warp;
  if (stmt->kind == ir::StmtKind::kStore && !stmt->is_async && !held_.Holds(stmt->slot)) {
    if (exprs_.buffer(stmt->slot).scope != ir::Scope::kLocal) return false;
  }
  return std::ranges::all_of(stmt->children(), [&](ir::Stmt s) { return MayRunBeside(s); });
}

void CudaMatrixTiles::WaitForRing() {
  if (ring_sums_.empty()) return;
  EmitWait(ring_sums_, 0, reading_, blocks_);
  ring_sums_.clear();
}

}  // namespace kiln::codegen
