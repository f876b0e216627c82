#include "compiler/codegen/cuda/matrix_warpgroup.h"

namespace kiln::codegen {
namespace {

// Steps that are unrolled where operands come through registers, and those of which products are under way
// together. More of them have no room beside the sums: the assembler would let each product wait for the one
// before.
constexpr int64_t kMostUnrolled = 8, kMostUnderWay = 2;

// Loops from this one on are unrolled.
size_t FirstInner(const WarpgroupText& tile) {
  size_t first = tile.loops.size();
  for (int64_t ahead = 1; first > 0; --first) {
    ahead *= tile.loops[first - 1].second;
    if (ahead > kMostUnrolled) break;
  }
  return first;
}

// `body` inside of the loops from `depth` on.
void EmitLoops(const WarpgroupText& tile, size_t depth, CudaBlocks& blocks,
               const std::function<void()>& body) {
  if (depth == tile.loops.size()) return body();
  const auto [var, extent] = tile.loops[depth];
  blocks.Loop(var, extent, depth >= FirstInner(tile) ? extent : 0,
              [&] { EmitLoops(tile, depth + 1, blocks, body); });
}

std::string Descriptor(const WarpgroupFactor& factor, const std::string& start) {
  return fmt::format("matrix_descriptor<{}, {}, {}>(&{})", factor.swizzle_bytes,
                     factor.leading_bytes, factor.stride_bytes, start);
}

// More arguments of the template; "": as they are by default.
std::string ApartText(const SumsApart& apart) {
  if (apart == SumsApart()) return "";
  return apart.neighbours == 1 ? fmt::format(", {}", apart.tiles)
                               : fmt::format(", {}, {}", apart.tiles, apart.neighbours);
}

// first(i): the first factor of the i-th 64 rows.
template <typename First>
void EmitProducts(const WarpgroupText& tile, CudaBlocks& blocks, First&& first) {
  for (size_t i = 0; i < tile.rows.size(); ++i) {
    blocks.Line(fmt::format("multiply_warpgroup_{}<{}, {}{}>(&{}, &{}, {}, {});", tile.unit->name,
                            tile.factor.columns, tile.factor.is_transposed ? 1 : 0,
                            ApartText(tile.sums_apart), tile.rows[i].low, tile.rows[i].high,
                            first(i), Descriptor(tile.factor, tile.start())));
  }
}

// All products are in flight together.
void EmitOfShared(const WarpgroupText& tile, CudaBlocks& blocks) {
  blocks.Line(fmt::format("settle({});", tile.sums));
  blocks.Line("start_products();");
  EmitLoops(tile, 0, blocks, [&] {
    EmitProducts(tile, blocks,
                 [&](size_t i) { return Descriptor(*tile.first_factor, tile.rows[i].start()); });
  });
  blocks.Line("commit_products();");
}

// Waits until registers are free for one more step, which the loops from `first` on number.
void EmitWaitForRegisters(const WarpgroupText& tile, size_t first, CudaBlocks& blocks) {
  int64_t steps = 1;
  std::string number;
  for (size_t i = tile.loops.size(); i-- > first;) {
    const auto [var, extent] = tile.loops[i];
    const std::string& name = blocks.name(var);
    number = (steps == 1 ? name : fmt::format("{} * {} + ", name, steps)) + number;
    steps *= extent;
  }
  if (steps <= kMostUnderWay) return;
  blocks.Line(fmt::format("if ({} >= {}) wait_for_products<{}>();", number, kMostUnderWay,
                          kMostUnderWay - 1));
}

// Steps of the unrolled loops have registers of their own, in turn.
bool EmitOfRegisters(const WarpgroupText& tile, const std::string& tiles, CudaBlocks& blocks) {
  const size_t first_inner = FirstInner(tile);
  const auto step = [&] {
    EmitWaitForRegisters(tile, first_inner, blocks);
    blocks.Line(fmt::format("unsigned {}[{}][4];", tiles, tile.rows.size()));
    tile.load(tiles);
    blocks.Line("start_products();");
    EmitProducts(tile, blocks, [&](size_t i) { return fmt::format("{}[{}]", tiles, i); });
    blocks.Line("commit_products();");
  };
  const auto emit = [&](auto& self, size_t depth) -> void {
    if (depth < first_inner) {
      const auto [var, extent] = tile.loops[depth];
      return blocks.Loop(var, extent, 0, [&] { self(self, depth + 1); });
    }
    blocks.Line(fmt::format("settle({});", tile.sums));
    EmitLoops(tile, depth, blocks, step);
    if (depth > 0) EmitWait({tile.sums}, 0, SumReading::kAny, blocks);
  };
  emit(emit, 0);
  return first_inner == 0;
}

// Registers have no addresses: all are named before the products begin, which are in flight
// together.
void EmitOfHeld(const WarpgroupText& tile, const std::string& tiles, CudaBlocks& blocks) {
  const auto of_step = [&](int64_t step) { return fmt::format("{}[{}]", tiles, step); };
  blocks.Line(fmt::format("unsigned {}[{}][{}][4];", tiles, tile.held_steps, tile.rows.size()));
  for (int64_t step = 0; step < tile.held_steps; ++step) {
    tile.set_step(step);
    tile.load(of_step(step));
  }
  blocks.Line(fmt::format("settle({});", tile.sums));
  blocks.Line("start_products();");
  for (int64_t step = 0; step < tile.held_steps; ++step) {
    tile.set_step(step);
    EmitProducts(tile, blocks, [&](size_t i) { return fmt::format("{}[{}]", of_step(step), i); });
  }
  blocks.Line("commit_products();");
}

}  // namespace

bool EmitWarpgroup(const WarpgroupText& tile, const std::string& tiles, CudaBlocks& blocks) {
  const bool is_held = tile.held_steps > 0;
  if (!is_held && !tile.first_factor) return EmitOfRegisters(tile, tiles, blocks);
  is_held ? EmitOfHeld(tile, tiles, blocks) : EmitOfShared(tile, blocks);
  return true;
}

void EmitWait(const std::vector<std::string>& sums, int64_t under_way, SumReading reading,
              CudaBlocks& blocks) {
  blocks.Line(fmt::format("wait_for_{}<{}{}>();",
                          reading == SumReading::kNone ? "products" : "sums", under_way,
                          reading == SumReading::kComputing ? ", false" : ""));
  for (const std::string& array : sums) blocks.Line(fmt::format("settle({});", array));
}

}  // namespace kiln::codegen
