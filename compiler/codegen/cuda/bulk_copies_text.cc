// The text of a ring that fits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/codegen/cuda/bulk_copies.h"
#include "compiler/codegen/cuda/types.h"
#include "compiler/codegen/cuda/warp_reduce.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using ir::LoopKind;
using ir::Stmt;
}  // namespace

std::string CudaBulkCopies::IndexText(const Linear& index) {
  return exprs_.PrintSimplified(scope_.simplifier().ToExpr(index)).text;
}

std::string CudaBulkCopies::BeginOf(std::string_view block) const {
  return fmt::format("static_cast<int>({}ll * ({}) / {})", loop_->extent * kernel_.grid[0], block,
                     persistent_blocks_);
}

std::string CudaBulkCopies::IterationsText() const {
  return is_streamed_ ? fmt::format("({} - {})", end_, begin_) : std::to_string(loop_->extent);
}

const std::string& CudaBulkCopies::Position() const {
  return persistent_blocks_ == 0 ? scope_.name(loop_->var) : position_;
}

void CudaBulkCopies::EmitStart(std::string_view barriers,
                               const std::function<std::string(LoopKind)>& coordinate) {
  if (!ring_status_.ok()) return;
  iteration_ = scope_.OwnVar("tile that is copied", loop_->extent);
  half_ = scope_.OwnVar("block of a pair", 2);
  globals_.clear();
  scope_.SetName(iteration_, scope_.name(loop_->var));
  scope_.SetValue(loop_->var, scope_.simplifier().Var(iteration_) - arith::Constant(ahead_count_));
  status_ = FindTiles();
  if (status_.ok()) FindOrder();
  if (status_.ok() && has_pairs_) status_ = ShareTiles();
  if (status_.ok()) status_ = FindPersistent();
  if (status_.ok()) {
    NameParts();
    EmitBarriers(barriers);
    blocks_.Braced(fmt::format("if (threadIdx.x >= {}) {{  // copies", computing_threads()), [&] {
      EmitCopyingThread(coordinate);
      EmitEnd();
      blocks_.Line("return;");
    });
  }
  scope_.ResetValue(loop_->var);
}

// Sums that one block begins and the next one finishes.
void CudaBulkCopies::NameParts() {
  if (!is_streamed_) return;
  const ir::Buffer& sums = exprs_.buffer(sums_);
  parts_ = names_.Unique(kernel_.name + "_parts");
  ready_ = names_.Unique(kernel_.name + "_ready");
  globals_ = fmt::format(
      "// What a block has of the sum that the next one finishes, and whether it is there. Of runs "
      "of the\n"
      "// kernel one has to end before the next one begins.\n"
      "__device__ {} {}[{}][{}];\n__device__ unsigned {}[{}];\n",
      CudaTypeName(sums.type), parts_, persistent_blocks_,
      sums.num_elements() * computing_threads(), ready_, persistent_blocks_);
}

void CudaBulkCopies::EmitPartsOfSum() {
  if (!is_streamed_) return;
  const std::string sums = exprs_.buffer_name(sums_), terms = std::to_string(loop_->extent),
                    sizes = fmt::format("<{}, {}>", exprs_.buffer(sums_).num_elements(),
                                        computing_threads());
  const auto arguments = [&](std::string_view block) {
    return fmt::format("({}, {}[{}], &{}[{}]);", sums, parts_, block, ready_, block);
  };
  blocks_.Braced(fmt::format("if ({} % {} != 0) {{  // the next block finishes it", end_, terms),
                 [&] {
                   blocks_.Line("give_part" + sizes + arguments("blockIdx.x"));
                   blocks_.Line("continue;");
                 });
  blocks_.Braced(
      fmt::format("if ({} % {} != 0) {{  // blocks before have begun it", begin_, terms), [&] {
        const std::string other = names_.Unique("other");
        blocks_.Braced(fmt::format("for (int {0} = blockIdx.x - 1;; --{0}) {{", other), [&] {
          blocks_.Line("add_part" + sizes + arguments(other));
          blocks_.Line(fmt::format("if ({} <= {} * {}) break;", BeginOf(other), number_, terms));
        });
      });
}

void CudaBulkCopies::EmitBarriers(std::string_view barriers) {
  preamble_.bulk_copies = true;
  filled_ = names_.Unique("filled");
  emptied_ = names_.Unique("emptied");
  map_names_.clear();
  for (const Tile& tile : tiles_) {
    const std::string name = exprs_.buffer_name(tile.slot);
    MapNames& names = map_names_.emplace_back();
    if (tile.has_whole()) names.whole = names_.Unique(name + "_map");
    if (tile.last_panel) names.last = names_.Unique(name + "_last_map");
    if (tile.pieces) names.pieces = names_.Unique(name + "_rows_map");
  }
  const int64_t threads = computing_threads();
  blocks_.Line(
      fmt::format("unsigned long long* const {} = reinterpret_cast<unsigned long long*>({});  // "
                  "[{}], of tiles",
                  filled_, barriers, depth_));
  blocks_.Line(fmt::format("unsigned long long* const {} = {} + {};", emptied_, filled_, depth_));
  blocks_.Braced(fmt::format("if (threadIdx.x == {}) {{", threads), [&] {
    blocks_.Line(fmt::format("start_barriers<{}, {}>({}, {});", depth_,
                             threads / kWarpThreads * (has_pairs_ ? 2 : 1), filled_, emptied_));
  });
  blocks_.Line(has_pairs_ ? "meet_pair();" : "__syncthreads();");
}

// One thread for all: it needs the numbers of the blocks, and nothing of threads.
void CudaBulkCopies::EmitCopyingThread(const std::function<std::string(LoopKind)>& coordinate) {
  const std::vector<Stmt> loops = BlockLoops();
  const auto inside = [&](auto& self, size_t i) -> void {
    if (i == loops.size()) return EmitAllCopies();
    const int32_t var = loops[i]->var;
    if (IsOfPersistentBlocks(loops[i])) return EmitTiles(loops[i], [&] { self(self, i + 1); });
    blocks_.Bound(
        var, fmt::format("const int {} = {};", scope_.name(var), coordinate(loops[i]->loop_kind)),
        [&] { self(self, i + 1); });
  };
  blocks_.Braced(fmt::format("if (threadIdx.x == {}) {{", computing_threads()), [&] {
    if (has_pairs_) {
      scope_.SetName(half_, names_.Unique("of_pair"));
      blocks_.Line(fmt::format("const int {} = blockIdx.x % 2;", scope_.name(half_)));
    }
    inside(inside, 0);
  });
}

void CudaBulkCopies::EmitAllCopies() {
  scope_.SetName(iteration_, names_.Unique(scope_.name(loop_->var)));
  const std::string& u = scope_.name(iteration_);
  const auto copy = [&] {
    const std::string buffer = names_.Unique("buffer"),
                      &position = persistent_blocks_ == 0 ? u : position_;
    blocks_.Line(fmt::format("const int {} = {} % {};", buffer, position, depth_));
    blocks_.Line(fmt::format("if ({0} >= {1}) wait_for(&{2}[{3}], ({0} / {1} + 1) % 2);", position,
                             depth_, emptied_, buffer));
    EmitCopies(buffer, fmt::format("&{}[{}]", filled_, buffer));
  };
  if (persistent_blocks_ == 0) return blocks_.Loop(iteration_, loop_->extent, 1, copy);
  position_ = names_.Unique("position");
  const std::string from = is_streamed_ ? fmt::format(" + {} % {}", begin_, loop_->extent) : "";
  blocks_.Line("#pragma unroll 1");
  blocks_.Braced(fmt::format("for (int {0} = {1}; {0} < {1} + {2}; ++{0}) {{", position_, done_,
                             IterationsText()),
                 [&] {
                   blocks_.Bound(
                       iteration_,
                       fmt::format("const int {} = {} - {}{};", u, position_, done_, from), copy);
                 });
}

std::vector<std::string> CudaBulkCopies::map_names() const {
  std::vector<std::string> all;
  for (const MapNames& names : map_names_) {
    for (const std::string& name : {names.whole, names.last, names.pieces}) {
      if (!name.empty()) all.push_back(name);
    }
  }
  return all;
}

void CudaBulkCopies::EmitCopies(std::string_view buffer, std::string_view filled) {
  const auto in_pieces =
      std::ranges::find_if(tiles_, [](const Tile& tile) { return tile.pieces.has_value(); });
  int64_t bytes = 0;  // of the other tiles
  for (auto tile = tiles_.begin(); tile != tiles_.end(); ++tile)
    bytes += tile == in_pieces ? 0 : tile->bytes();
  const auto names_of = [&](auto tile) -> const MapNames& {
    return map_names_[static_cast<size_t>(tile - tiles_.begin())];
  };
  if (in_pieces == tiles_.end()) {
    blocks_.Line(fmt::format("expect_bytes({}, {});", filled, bytes));
  } else {
    EmitLastRows(*in_pieces, names_of(in_pieces), buffer, filled, bytes);
  }
  for (auto tile = tiles_.begin(); tile != tiles_.end(); ++tile) {
    if (tile != in_pieces) EmitTile(*tile, names_of(tile), buffer, filled);
  }
}

// Of the rows that the array has left: all of the tile's, at once, or some pieces.
void CudaBulkCopies::EmitLastRows(const Tile& tile, const MapNames& names, std::string_view buffer,
                                  std::string_view filled, int64_t other_bytes) {
  const RowPieces& pieces = *tile.pieces;
  const std::string rows = names_.Unique("rows");
  const Linear left = arith::Constant(pieces.map.extents[1]) - pieces.start[1];
  const int64_t bytes = BoxBytes(pieces.map) * tile.panels;
  const auto emit_pieces = [&] {
    blocks_.Line(fmt::format("expect_bytes({}, {} + ({} + {}) / {} * {});", filled, other_bytes,
                             rows, kGroupRows - 1, kGroupRows, bytes));
    EmitPieces(tile, names.pieces, buffer, filled, rows);
  };
  blocks_.Line(fmt::format("const int {} = min({}, {});", rows, IndexText(left), pieces.rows));
  if (!tile.has_whole()) return emit_pieces();
  blocks_.Braced(fmt::format("if ({} == {}) {{", rows, pieces.rows), [&] {
    blocks_.Line(fmt::format("expect_bytes({}, {});", filled,
                             other_bytes + bytes * pieces.rows / kGroupRows));
    EmitTile(tile, names, buffer, filled);
  });
  blocks_.Braced("else {", emit_pieces);
}

// Those of a group come from its lower and its upper half in turn.
void CudaBulkCopies::EmitPieces(const Tile& tile, const std::string& map, std::string_view buffer,
                                std::string_view filled, const std::string& rows) {
  const RowPieces& pieces = *tile.pieces;
  const std::string piece = names_.Unique("piece"), row = names_.Unique("row");
  blocks_.Line("#pragma unroll");
  blocks_.Braced(
      fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", piece, pieces.rows / kGroupRows), [&] {
        blocks_.Line(fmt::format(
            "const int {0} = {1} / {2} * {3} + {1} % 2 * {4} + {1} % {2} / 2 * {5};", row, piece,
            pieces.group / kGroupRows, pieces.group, pieces.group / 2, kGroupRows));
        blocks_.Line(fmt::format("if ({} >= {}) continue;", row, rows));
        for (int64_t p = 0; p < tile.panels; ++p) {
          std::vector<std::string> texts;
          for (size_t d = 0; d < pieces.start.size(); ++d) {
            const Linear at =
                d == 0 ? pieces.start[d] + arith::Constant(p * tile.width) : pieces.start[d];
            texts.push_back(IndexText(at) + (d == 1 ? " + " + row : ""));
          }
          blocks_.Line(fmt::format("copy_box(&{}[{} * {} + {} + {} * {}], &{}, {}, {});",
                                   exprs_.buffer_name(tile.slot), buffer, tile.buffer,
                                   p * tile.panel, piece, kGroupRows * tile.width, map, filled,
                                   fmt::join(texts, ", ")));
        }
      });
}

// Of a tile that pairs share the block's half.
void CudaBulkCopies::EmitTile(const Tile& tile, const MapNames& names, std::string_view buffer,
                              std::string_view filled) {
  const Linear half = scope_.simplifier().Var(half_);
  const int64_t panels = tile.half_panels > 0 ? tile.half_panels : tile.panels;
  for (int64_t p = 0; p < panels; ++p) {
    const Linear panel = arith::Constant(p) + half * tile.half_panels;
    std::vector<Linear> start = tile.start;
    start[0] = start[0] + panel * tile.width;
    Linear offset = panel * tile.panel;
    if (tile.half_rows > 0) {
      start[1] = start[1] + half * tile.half_rows;
      offset = offset + half * (tile.half_rows * tile.width);
    }
    std::vector<std::string> texts;
    for (const Linear& at : start) texts.push_back(IndexText(at));
    blocks_.Line(fmt::format("{}(&{}[{} * {} + {}], &{}, {}, {});",
                             tile.is_shared ? "copy_box_to_pair" : "copy_box",
                             exprs_.buffer_name(tile.slot), buffer, tile.buffer, IndexText(offset),
                             tile.last_panel && p + 1 == panels ? names.last : names.whole, filled,
                             fmt::join(texts, ", ")));
  }
}

void CudaBulkCopies::EmitArrival() {
  const std::string& t = Position();
  blocks_.Line(fmt::format("wait_for(&{0}[{1} % {2}], {1} / {2} % 2);", filled_, t, depth_));
}

void CudaBulkCopies::EmitEnd() {
  if (has_pairs_) blocks_.Line("meet_pair();");
}

void CudaBulkCopies::EmitRelease(bool is_next_under_way) {
  const std::string &t = Position(), begin = persistent_blocks_ == 0 ? "0" : done_;
  const std::string which = is_next_under_way ? fmt::format("({} - 1)", t) : t;
  blocks_.Line(fmt::format("if (threadIdx.x % 32 == 0{}) {}(&{}[{} % {}]);",
                           is_next_under_way ? fmt::format(" && {} > {}", t, begin) : "",
                           has_pairs_ ? "release_pair" : "release", emptied_, which, depth_));
}

void CudaBulkCopies::EmitReleaseOfLast() {
  if (persistent_blocks_ == 0) return;
  const std::string last = fmt::format("({} + {} - 1)", done_, IterationsText());
  blocks_.Line(fmt::format("if (threadIdx.x % 32 == 0) {}(&{}[{} % {}]);",
                           has_pairs_ ? "release_pair" : "release", emptied_, last, depth_));
}

}  // namespace kiln::codegen
