// The text of a tile that fits: which registers are loaded from where, and multiplied.
#include <algorithm>

#include "compiler/codegen/cuda/buffer_use.h"
#include "compiler/codegen/cuda/matrix_tile.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using instructions::kWarpgroupThreads;
using instructions::kWarpgroupWarps;

// The function that loads tiles by ldmatrix.
std::string_view LoadName(bool is_transposed) {
  return is_transposed ? "load_tiles_transposed" : "load_tiles";
}

}  // namespace

Status CudaMatrixTiles::Emit(const RegisterTile& nest, const ThreadsAround& threads,
                             int64_t copies_under_way) {
  KILN_ASSIGN_OR_RETURN(const Tile tile, Find(nest, threads));
  spare_ = tile.rows ? SpareBuffers(tile, exprs_, copies_under_way) : 0;
  const bool is_held = tile.a.reading == Operand::Reading::kHeld;
  const bool is_of_units = tile.rows || (tile.is_warpgroup && is_held);
  if (!is_of_units) preamble_.matrix_units.insert(tile.unit);
  const std::string thread = ThreadName(tile);
  scope_.SetName(tile.lane, names_.Unique("lane"));
  const std::string lane =
      fmt::format("const int {} = {} % {};", scope_.name(tile.lane), thread, kWarpThreads);
  blocks_.Braced("{", [&] {
    if (is_of_units) return EmitWarpgroupSteps(tile);
    blocks_.Bound(tile.lane, lane, [&] {
      if (tile.is_warpgroup) return EmitWarpgroupSteps(tile);
      if (!tile.has_warps() || IsOfOneWarp(tile)) return EmitSteps(tile);
      scope_.SetName(tile.warp, names_.Unique("warp"));
      const std::string warp =
          fmt::format("const int {} = {} / {};", scope_.name(tile.warp), thread, kWarpThreads);
      blocks_.Bound(tile.warp, warp, [&] { EmitSteps(tile); });
    });
  });
  Reset(tile);
  return OkStatus();
}

// Not the number that the thread has in the program, where that is another one.
std::string CudaMatrixTiles::ThreadName(const Tile& tile) const {
  return tile.order.is_changed() ? "static_cast<int>(threadIdx.x)" : scope_.name(tile.thread);
}

// Do addresses not depend on which warp it is?
bool CudaMatrixTiles::IsOfOneWarp(const Tile& tile) {
  return tile.a.reading == Operand::Reading::kHeld &&
         std::ranges::none_of(tile.b.places, [&](const arith::Linear& place) {
           return std::ranges::any_of(place.terms, [&](const arith::Term& term) {
             return ir::UsesVar(term.atom, tile.warp);
           });
         });
}

void CudaMatrixTiles::EmitSteps(const Tile& tile) {
  const auto emit = [&](auto& self, size_t depth) -> void {
    if (depth < tile.around.size()) {
      const ir::Stmt loop = tile.around[depth];
      if (loop->extent == 1) return self(self, depth + 1);
      return blocks_.Loop(loop->var, loop->extent, 0, [&] { self(self, depth + 1); });
    }
    if (tile.a.reading == Operand::Reading::kHeld) return EmitKnownSteps(tile);
    if (tile.steps() == 1) return EmitStep(tile);
    scope_.SetName(tile.step, names_.Unique(scope_.name(tile.k_loop->var) + "_step"));
    blocks_.Loop(tile.step, tile.steps(), tile.steps() <= 8 ? tile.steps() : 0,
                 [&] { EmitStep(tile); });
  };
  emit(emit, 0);
}

// Registers have no addresses.
void CudaMatrixTiles::EmitKnownSteps(Tile tile) {
  for (int64_t step = 0; step < tile.steps(); ++step) {
    tile.known_step = step;
    blocks_.Braced("{", [&] { EmitStep(tile); });
  }
}

std::string CudaMatrixTiles::Row(const Tile& tile, const Operand& operand, size_t position) {
  std::string text = "&" + exprs_.Element(operand.load->id,
                                          {.offset = RowOf(tile, operand, position), .block = {}});
  Reset(tile);
  return text;
}

std::string CudaMatrixTiles::Element(const Tile& tile, const Operand& operand, size_t position,
                                     int part) {
  std::string text = exprs_.Element(
      operand.load->id, {.offset = ElementOf(tile, operand, position, part), .block = {}});
  Reset(tile);
  return fmt::format("__float_as_uint({})", text);
}

// Of each two rows a fragment of four registers.
void CudaMatrixTiles::LoadFirst(const Tile& tile, const std::string& name) {
  if (tile.a.reading == Operand::Reading::kHeld) return TakeHeld(tile, name);
  for (size_t i = 0; i < tile.a.places.size() / 2; ++i) {
    if (tile.a.reading == Operand::Reading::kElements) {
      for (int part = 0; part < 4; ++part)
        blocks_.Line(
            fmt::format("{}[{}][{}] = {};", name, i, part, Element(tile, tile.a, 2 * i, part)));
      continue;
    }
    blocks_.Line(fmt::format("{0}({1}[{2}][0], {1}[{2}][1], {1}[{2}][2], {1}[{2}][3], {3});",
                             LoadName(tile.a.reading != Operand::Reading::kRows), name, i,
                             Row(tile, tile.a, 2 * i)));
    if (tile.a.reading != Operand::Reading::kPairs) continue;
    for (const int half : {0, 2})
      Unzip(tile, fmt::format("{}[{}][{}]", name, i, half),
            fmt::format("{}[{}][{}]", name, i, half + 1));
  }
}

// A register has two neighbours of 8 terms of a row: of both rows of a fragment first.
void CudaMatrixTiles::TakeHeld(const Tile& tile, const std::string& name) {
  constexpr int64_t kHalf = 8;
  const lower::HeldPairs::Read& held = *held_.pairs.at(tile.a.load->id).ReadBy(tile.store);
  for (size_t i = 0; i < tile.a.places.size() / 2; ++i) {
    for (int part = 0; part < 4; ++part) {
      SetPosition(tile, tile.a_elements[2 * i + static_cast<size_t>(part % 2)]);
      std::vector<int64_t> rows;
      for (const int32_t var : held.row_vars) rows.push_back(scope_.value(var).constant);
      const int64_t term = tile.known_step * tile.depth() + part / 2 * kHalf;
      blocks_.Line(fmt::format("{}[{}][{}] = {}[{}];", name, i, part,
                               exprs_.buffer_name(tile.a.load->id),
                               held.register_of.at({rows, term})));
    }
  }
  Reset(tile);
}

void CudaMatrixTiles::Unzip(const Tile& tile, const std::string& first, const std::string& second) {
  preamble_.unzips_bytes = true;
  blocks_.Line(fmt::format("unzip_bytes({}, {}, {});", first, second, scope_.name(tile.lane)));
}

// Of each four columns two fragments, of the even and of the odd ones.
void CudaMatrixTiles::LoadSecondPairs(const Tile& tile, const std::string& name) {
  for (size_t j = 0; j < tile.b.places.size() / 2; j += 2) {
    blocks_.Line(fmt::format("{0}({1}[{2}][0], {1}[{3}][0], {1}[{2}][1], {1}[{3}][1], {4});",
                             LoadName(true), name, j, j + 1, Row(tile, tile.b, 2 * j)));
    for (const int half : {0, 1})
      Unzip(tile, fmt::format("{}[{}][{}]", name, j, half),
            fmt::format("{}[{}][{}]", name, j + 1, half));
  }
}

std::pair<size_t, size_t> CudaMatrixTiles::ColumnsOf(const Tile& tile, size_t fragment) {
  if (tile.b.reading != Operand::Reading::kPairs) return {2 * fragment, 2 * fragment + 1};
  const size_t first = fragment / 2 * 4 + fragment % 2;
  return {first, first + 2};
}

// Of each two columns a fragment of two registers.
void CudaMatrixTiles::LoadSecond(const Tile& tile, const std::string& name) {
  if (tile.b.reading == Operand::Reading::kPairs) return LoadSecondPairs(tile, name);
  const size_t columns = tile.b.places.size() / 2;
  if (tile.b.reading == Operand::Reading::kElements) {
    for (size_t j = 0; j < columns; ++j) {
      for (int part = 0; part < 2; ++part)
        blocks_.Line(
            fmt::format("{}[{}][{}] = {};", name, j, part, Element(tile, tile.b, 2 * j, part)));
    }
    return;
  }
  const std::string_view load = LoadName(tile.b.reading == Operand::Reading::kColumns);
  for (size_t j = 0; j < columns;) {
    const bool is_pair = HasNext(tile.b, 2 * j);
    if (is_pair) {
      blocks_.Line(fmt::format("{0}({1}[{2}][0], {1}[{2}][1], {1}[{3}][0], {1}[{3}][1], {4});",
                               load, name, j, j + 1, Row(tile, tile.b, 2 * j)));
    } else {
      blocks_.Line(fmt::format("{0}({1}[{2}][0], {1}[{2}][1], {3});", load, name, j,
                               Row(tile, tile.b, 2 * j)));
    }
    j += is_pair ? 2 : 1;
  }
}

void CudaMatrixTiles::EmitStep(const Tile& tile) {
  const std::string a = names_.Unique(exprs_.buffer_name(tile.a.load->id) + "_tiles"),
                    b = names_.Unique(exprs_.buffer_name(tile.b.load->id) + "_tiles");
  const size_t rows = tile.a.places.size() / 2, columns = tile.b.places.size() / 2;
  blocks_.Line(fmt::format("unsigned {}[{}][4], {}[{}][2];", a, rows, b, columns));
  LoadFirst(tile, a);
  LoadSecond(tile, b);
  if (tile.unit->rounds) {
    for (const std::string& tiles : {a, b}) blocks_.Line(fmt::format("round_tiles({});", tiles));
  }
  const auto sum = [&](size_t i, size_t j) {
    return exprs_.Element(tile.store->slot, tile.sums[i][j]);
  };
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      const auto [first, second] = ColumnsOf(tile, j);
      blocks_.Line(fmt::format("multiply_tiles_{}({}, {}, {}, {}, {}[{}], {}[{}]);",
                               tile.unit->name, sum(2 * i, first), sum(2 * i, second),
                               sum(2 * i + 1, first), sum(2 * i + 1, second), a, i, b, j));
    }
  }
}

// ---- of four warps together

void CudaMatrixTiles::EmitWarpgroupSteps(Tile tile) {
  const bool is_held = tile.a.reading == Operand::Reading::kHeld;
  WarpgroupText text;
  for (const ir::Stmt loop : tile.around) {
    if (loop->extent > 1) text.loops.emplace_back(loop->var, loop->extent);
  }
  if (is_held) {
    text.held_steps = tile.steps();
    text.set_step = [&](int64_t step) { tile.known_step = step; };
  } else if (tile.steps() > 1) {
    scope_.SetName(tile.step, names_.Unique(scope_.name(tile.k_loop->var) + "_step"));
    text.loops.emplace_back(tile.step, tile.steps());
  }
  const auto sum = [&](size_t row) { return exprs_.Element(tile.store->slot, tile.sums[row][0]); };
  const auto start = [&](ir::Expr load, const arith::Linear& offset) {
    return exprs_.LineElement(load->id, {.offset = offset, .block = {}});
  };
  for (size_t i = 0; i < tile.sums.size(); i += 2) text.rows.push_back({sum(i), sum(i + 1)});
  for (size_t i = 0; i < tile.row_starts.size(); ++i)
    text.rows[i].start = [&, i] { return start(tile.a.load, tile.row_starts[i]); };
  text.sums = exprs_.buffer_name(tile.store->slot);
  text.sums_apart = tile.sums_apart;
  text.unit = tile.unit;
  text.factor = tile.columns;
  text.first_factor = tile.rows;
  text.load = [&](const std::string& tiles) {
    LoadFirst(tile, tiles);
    if (tile.unit->rounds) blocks_.Line(fmt::format("round_tiles({});", tiles));
  };
  text.start = [&] {
    return start(tile.b.load, is_held ? StartOfColumns(tile) : tile.columns.start);
  };
  preamble_.warpgroup_units.insert({.unit = tile.unit,
                                    .is_first_shared = tile.rows.has_value(),
                                    .columns = tile.columns.columns});
  const std::string tiles = names_.Unique(exprs_.buffer_name(tile.a.load->id) + "_tiles"),
                    thread = ThreadName(tile);
  const auto emit = [&] {
    if (!EmitWarpgroup(text, tiles, blocks_)) return;
    under_way_.push_back({.sums = tile.store->slot,
                          .held = is_held ? tile.a.load->id : -1,
                          .is_committed_once = is_held || tile.rows,
                          .iterations = spare_});
  };
  // What the units read is the same for all.
  if (is_held) return emit();
  const auto emit_of_warpgroup = [&] {
    if (!tile.has_warps()) return emit();
    scope_.SetName(tile.warp, names_.Unique("warpgroup"));
    const std::string warpgroup =
        fmt::format("const int {} = {} / {};", scope_.name(tile.warp), thread, kWarpgroupThreads);
    blocks_.Bound(tile.warp, warpgroup, emit);
  };
  if (tile.rows) return emit_of_warpgroup();
  scope_.SetName(tile.member, names_.Unique("warp"));
  const std::string member = fmt::format("const int {} = {} / {} % {};", scope_.name(tile.member),
                                         thread, kWarpThreads, kWarpgroupWarps);
  blocks_.Bound(tile.member, member, emit_of_warpgroup);
}

void CudaMatrixTiles::Wait(size_t kept) {
  if (under_way_.size() <= kept) return;
  const int64_t iterations = under_way_.size() == 1 ? under_way_[0].iterations : 0;
  ring_sums_ = iterations > 0 ? exprs_.buffer_name(under_way_[0].sums) : "";
  EmitWait(SumsFrom(kept, under_way_.size()), iterations, /*are_read=*/iterations == 0, blocks_);
  under_way_.resize(kept);
}

std::vector<std::string> CudaMatrixTiles::SumsFrom(size_t first, size_t end) const {
  std::vector<std::string> sums;
  for (size_t i = first; i < end; ++i) sums.push_back(exprs_.buffer_name(under_way_[i].sums));
  return sums;
}

// Products run on beside copies, and beside what threads do with other registers alone.
void CudaMatrixTiles::WaitBefore(ir::Stmt next, size_t kept) {
  if (under_way_.size() <= kept || IsCopies(next)) return;
  const auto is_once = [](const UnderWay& tile) {
    return tile.is_committed_once && tile.iterations == 0;
  };
  if (!MayRunBeside(next) || !std::ranges::all_of(under_way_, is_once)) return Wait(kept);
  size_t needed = under_way_.size();
  while (needed > kept && !UsesBuffer(next, under_way_[needed - 1].sums) &&
         !UsesBuffer(next, under_way_[needed - 1].held))
    --needed;
  if (needed == kept) return;
  EmitWait(SumsFrom(kept, needed), std::ssize(under_way_) - static_cast<int64_t>(needed),
           /*are_read=*/true, blocks_);
  under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(kept),
                   under_way_.begin() + static_cast<std::ptrdiff_t>(needed));
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
  EmitWait({ring_sums_}, 0, /*are_read=*/true, blocks_);
  ring_sums_.clear();
}

}  // namespace kiln::codegen
