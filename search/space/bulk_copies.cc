#include "search/space/bulk_copies.h"

#include <algorithm>
#include <set>
#include <span>

#include "base/numbers/integers.h"
#include "compiler/arith/linear.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/instructions/bulk_copy.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/ir/traverse.h"
#include "compiler/schedule/async_copy.h"
#include "compiler/schedule/buffer_shape.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/gpu_validity.h"
#include "search/space/matrix_product.h"
#include "search/space/matrix_rows.h"
#include "search/space/matrix_tile.h"
#include "search/space/online_copies.h"
#include "search/space/shared_layout.h"
#include "search/space/thread_shapes.h"

namespace kiln::search {
namespace {

using instructions::kBoxAlignment;
using instructions::kBoxPieceBytes;
using instructions::kMostBoxDimensions;
using instructions::kMostOfBox;
using ir::Expr;
using ir::Op;
using schedule::Attach;
using schedule::State;

// With those that copy a block must not have too many.
constexpr int64_t kMostThreads = 896;
// Iterations of a block whose sums are streamed, and of all of them.
constexpr int64_t kLeastTerms = 4, kMostTerms = int64_t{1} << 30;

// Of a row of a swizzled tile (codegen/cuda/swizzle.h).
int64_t PanelBytes(int64_t row) {
  return row % 128 == 0 ? 128 : row % 64 == 0 ? 64 : row % 32 == 0 ? 32 : 16;
}

// Bytes of a row of the tile that stage f fetches, and of those that are padding.
int64_t RowBytes(const State& state, int f) {
  const schedule::Stage& stage = state.stage(f);
  return schedule::BufferShape(stage, schedule::RegionOf(stage), schedule::IsSwizzled(state, f))
             .back() *
         stage.op->type().bytes();
}

// Is the condition that an index is at or behind the beginning of its dimension, or before its end?
bool IsEnd(Expr part, Expr load, std::span<const int64_t> shape) {
  if (part->op != Op::kLt && part->op != Op::kGe) return false;
  const arith::Linear difference = arith::Linearize(part->arg(0)) - arith::Linearize(part->arg(1));
  for (size_t d = 0; d < shape.size(); ++d) {
    const arith::Linear index = arith::Linearize(load->arg(d));
    if (difference == (part->op == Op::kGe ? index : index - arith::Constant(shape[d])))
      return true;
  }
  return false;
}

bool AreEnds(Expr condition, Expr load, std::span<const int64_t> shape) {
  if (condition->op != Op::kAnd) return IsEnd(condition, load, shape);
  return std::ranges::all_of(condition->args(),
                             [&](Expr part) { return AreEnds(part, load, shape); });
}

// Does the operator copy elements that are as far apart where they come from, and have zeros beyond the
// ends of that alone? What is computed where it is read copies itself.
std::optional<int> SourceOf(const State& state, int s) {
  const dag::OpNode& node = state.dag()->node(s);
  if (node.op->is_placeholder() || node.op->is_reduction() || node.op->num_outputs() != 1)
    return std::nullopt;
  Expr value = node.op->body();
  const Expr load = ir::CopiedLoad(value);
  if (load == nullptr || load->num_args != node.op->axes().size()) return std::nullopt;
  const int from = node.inputs[load->id].op;
  const std::vector<int64_t>& shape = state.dag()->shape({from, node.inputs[load->id].output});
  for (int d = 0; d < static_cast<int>(load->num_args); ++d) {
    const arith::Linear index = arith::Linearize(load->arg(static_cast<size_t>(d)));
    const bool is_shifted = index.terms.size() == 1 && index.terms[0].coefficient == 1 &&
                            index.terms[0].atom->op == Op::kVar && index.terms[0].atom->id == d;
    if (!is_shifted) return std::nullopt;
  }
  bool has_zeros = false;
  for (; value != load; value = value->arg(1)) {
    has_zeros = true;
    if (!AreEnds(value->arg(0), load, shape)) return std::nullopt;
  }
  if (state.attach(from).kind != Attach::kInlined) return from;
  // Zeros of zeros would be those of another array.
  return has_zeros ? std::nullopt : SourceOf(state, from);
}

// Where the rows of a tile of the first factor are interleaved (codegen/cuda/swizzle.h), for they do not
// follow each other as they lie, are they rows of one axis, as it stands, which are the last dimension
// but one of what stage `f` fetches, all of them and no more?
bool HasPlainRows(const State& state, int s, int f, const MatrixProduct& product) {
  const MatrixSplits splits = MatrixSplitsOf(state, s);
  const Expr load = product.first;
  if (!product.IsAlongDepth(load) || load->num_args < 2) return true;
  const size_t before = product.axes.size() - splits.lengths.size(), dim = load->num_args - 2u;
  int axes = 0;
  std::optional<size_t> last;  // of the rows
  for (size_t axis = before; axis < product.axes.size(); ++axis) {
    const std::vector<int64_t>& lengths = splits.lengths[axis - before];
    if (product.axes[axis] != MatrixAxis::kRow || ProductOfCounts(lengths) == 1) continue;
    ++axes;
    last = axis;
  }
  if (axes == 0) return true;
  std::vector<int64_t> fetched;
  for (size_t d = 0; d < load->num_args; ++d)
    fetched.push_back(std::max<int64_t>(1, state.stage(f).iters[d].extent));
  if (HasRowsInOrder(product, splits.lengths, fetched)) return true;
  const std::vector<int64_t>& lengths = splits.lengths[*last - before];
  // Of several axes of rows those of a pair may be of another one.
  if (axes > 1 && lengths[0] % 2 != 0) return true;
  const Expr index = load->arg(dim);
  if (!ir::UsesVar(index, static_cast<int32_t>(*last)) ||
      state.stage(f).iters[dim].extent != ProductOfCounts(lengths))
    return true;
  return index->op == Op::kVar;
}

// Has a tile two halves: panels of rows, or groups of 8 rows?
bool HasHalves(const State& state, int f) {
  const schedule::Stage& stage = state.stage(f);
  const auto extent = [&](size_t d) { return std::max<int64_t>(1, stage.iters[d].extent); };
  const size_t last = stage.op->axes().size() - 1u;
  const int64_t row = RowBytes(state, f), panel = PanelBytes(row);
  if (row / panel % 2 == 0) return true;
  for (size_t d = 0; d + 1 < last; ++d) {
    if (extent(d) != 1) return false;
  }
  return last > 0 && extent(last - 1) % 16 == 0;
}

// Are elements of a dimension of the tile chosen one by one, as the rows of x[rows[i], k]? Its reader reads
// stage f by the load.
bool IsChosenByElements(const State& state, int f, Expr load) {
  for (size_t d = 0; d < load->num_args; ++d) {
    if (ir::HasLoad(load->arg(d)) && state.stage(f).iters[d].extent > 1) return true;
  }
  return false;
}

bool IsBox(const State& state, int f) {
  const std::optional<int> from = SourceOf(state, f);
  if (!from) return false;
  const dag::Dag& dag = *state.dag();
  const schedule::Stage& stage = state.stage(f);
  const std::vector<int64_t>& shape = dag.shape({*from, 0});
  const int64_t bytes = stage.op->type().bytes();
  if (shape.size() > kMostBoxDimensions || shape.size() < 2 || bytes > 4 ||
      shape.back() * bytes % kBoxPieceBytes != 0)
    return false;
  // Where dimensions of one element stand makes no difference, and is left out in the end.
  std::vector<int> order(stage.layout.begin(), stage.layout.end());
  std::erase_if(order, [&](int d) { return stage.iters[static_cast<size_t>(d)].extent <= 1; });
  if (!std::ranges::is_sorted(order)) return false;
  const std::vector<int> packed = dag::PackedInputs(dag);
  if (std::ranges::find(packed, *from) != packed.end()) return false;
  int64_t rows = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t extent = std::max<int64_t>(1, stage.iters[d].extent);
    const bool is_last = d + 1 == shape.size();
    if (is_last ? extent * bytes % kBoxPieceBytes != 0 : extent > kMostOfBox) return false;
    rows *= is_last ? 1 : extent;
  }
  return rows * PanelBytes(RowBytes(state, f)) % kBoxAlignment == 0;
}

// That follow each other in the ring.
int64_t TilesOfSum(const MatrixSplits& splits) {
  int64_t tiles = 1;
  for (const MatrixSplits::Reduction& split : splits.reductions)
    tiles *= CeilDiv(split.extent, ProductOfCounts(split.lengths));
  return tiles;
}

// Are the tiles of all factors of the product, each one of its own, boxes, and nothing else is fetched?
bool ReadsBoxes(const State& state, int s, const MatrixProduct& product) {
  const std::vector<int> all = FetchedStages(state);
  std::set<int> fetched, read;
  for (const int f : all) {
    if (state.attach(f).stage == s) fetched.insert(f);
  }
  for (const MatrixProduct& sum : product.Sums()) {
    for (const Expr load : {sum.first, sum.second}) {
      const int f = state.dag()->node(s).inputs[load->id].op;
      read.insert(f);
      if (!fetched.contains(f) || IsCopied(state, f) || !schedule::CanCopyAsync(state, f) ||
          !IsBox(state, f) || IsChosenByElements(state, f, load))
        return false;
      if (load == sum.first && !HasPlainRows(state, s, f, sum)) return false;
    }
  }
  return fetched == read && std::ssize(read) == 1 + product.num_sums();
}

int RootOf(const State& state, int s) {
  while (state.attach(s).kind == Attach::kIter) s = state.attach(s).stage;
  return s;
}

}  // namespace

std::vector<int> RootsOfMatrixUnits(const State& state) {
  std::set<int> roots;
  for (const int s : ProductsOfMatrixUnits(state)) roots.insert(RootOf(state, s));
  return {roots.begin(), roots.end()};
}

bool CanCopyInBulk(const State& state, int s) {
  const schedule::Stage& stage = state.stage(s);
  if (ir::MatrixUnitScopeOf(stage.hints) != ir::MatrixUnitScope::kWarpgroup ||
      !stage.asynchronous || stage.buffering < 2 || stage.buffering > instructions::kMaxBulkBuffers)
    return false;
  const std::optional<MatrixProduct> product = TiledProductOf(state, s);
  if (!product) return false;
  // Groups of threads that share a sum out have tiles of their own.
  const MatrixSplits splits = MatrixSplitsOf(state, s);
  int64_t threads = 1;
  for (const std::vector<int64_t>& lengths : splits.lengths) threads *= lengths[1];
  if (splits.lengths.empty() || threads > kMostThreads ||
      UseOfKernel(state, RootOf(state, s)).threads != threads)
    return false;
  if (TilesOfSum(splits) < 2) return false;
  return ReadsBoxes(state, s, *product);
}

bool CanCopyForPairs(const State& state, int s) {
  const std::optional<MatrixProduct> product = TiledProductOf(state, s);
  const MatrixSplits splits = MatrixSplitsOf(state, s);
  if (!product || splits.lengths.size() != product->axes.size() ||
      UseOfKernel(state, RootOf(state, s)).cluster > 1)
    return false;
  // Several tiles along the last axis, and an even number of them along one of rows.
  int64_t rows = 0;
  for (size_t axis = 0; axis < splits.lengths.size(); ++axis) {
    const int64_t blocks = CeilDiv(splits.extents[axis], ProductOfCounts(splits.lengths[axis]));
    const bool is_last = axis + 1 == splits.lengths.size();
    if (is_last ? blocks < 2 : blocks > 1 && (rows > 0 || product->axes[axis] != MatrixAxis::kRow))
      return false;
    if (!is_last && blocks > 1) rows = blocks;
  }
  const auto has_halves = [&](const MatrixProduct& sum) {
    return HasHalves(state, state.dag()->node(s).inputs[sum.second->id].op);
  };
  return rows > 0 && rows % 2 == 0 && CanCopyInBulk(state, s) &&
         std::ranges::all_of(product->Sums(), has_halves);
}

namespace {

// The product of a kernel whose blocks could take tiles one after the other.
std::optional<int> ProductOfTiles(const State& state, int root) {
  for (const int s : ProductsOfMatrixUnits(state)) {
    if (RootOf(state, s) != root) continue;
    // Parts of a sum are no tiles.
    const MatrixSplits splits = MatrixSplitsOf(state, s);
    const schedule::Stage& stage = state.stage(s);
    const bool has_tiles =
        !splits.lengths.empty() && splits.lengths.size() == stage.op->axes().size();
    if (has_tiles && stage.hints[ir::Hint::kBulkCopies] != 0 &&
        UseOfKernel(state, root).cluster <= 1)
      return s;
    return std::nullopt;
  }
  return std::nullopt;
}

int64_t TilesOf(const MatrixSplits& splits) {
  int64_t tiles = 1;
  for (size_t axis = 0; axis < splits.lengths.size(); ++axis)
    tiles *= CeilDiv(splits.extents[axis], ProductOfCounts(splits.lengths[axis]));
  return tiles;
}

}  // namespace

bool CanPersist(const State& state, int root, int32_t blocks) {
  if (CanStream(state, root)) return true;
  const std::optional<int> s = ProductOfTiles(state, root);
  return s && blocks % 2 == 0 && TilesOf(MatrixSplitsOf(state, *s)) > blocks;
}

bool CanStream(const State& state, int root) {
  const ir::Hints& hints = state.stage(root).hints;
  const int64_t blocks = hints[ir::Hint::kPersistentBlocks];
  const std::optional<int> s = ProductOfTiles(state, root);
  if (!s || hints[ir::Hint::kStreamK] == 0 || blocks == 0 ||
      state.stage(*s).hints[ir::Hint::kBulkCopies] > 1)
    return false;
  // The part of a sum that one block gives to the next is one array.
  if (state.stage(*s).op->num_outputs() != 1) return false;
  const MatrixSplits splits = MatrixSplitsOf(state, *s);
  const int64_t tiles = TilesOf(splits), terms = tiles * TilesOfSum(splits);
  return tiles > 1 && tiles % blocks != 0 && terms >= kLeastTerms * blocks && terms <= kMostTerms;
}

int64_t BulkBarrierBytes(const State& state, int root) {
  for (const int product : ProductsOfMatrixUnits(state)) {
    if (state.stage(product).hints[ir::Hint::kBulkCopies] == 0) continue;
    if (RootOf(state, product) == root) return instructions::kBulkBarrierBytes;
  }
  return 0;
}

namespace {

// The largest value up to this one that the hint can have.
int32_t MostOf(const State& filled, int s, ir::Hint hint, int32_t value) {
  if (hint == ir::Hint::kPersistentBlocks) return CanPersist(filled, s, value) ? value : 0;
  if (hint == ir::Hint::kStreamK) return CanStream(filled, s) ? value : 0;
  if (filled.online() != nullptr) return CanBringTiles(filled) ? 1 : 0;
  if (value > 1 && CanCopyForPairs(filled, s)) return value;
  return CanCopyInBulk(filled, s) ? 1 : 0;
}

}  // namespace

bool SimplifyBulkCopies(const State& filled, std::vector<schedule::StepPtr>& steps) {
  bool changed = false;
  for (schedule::StepPtr& step : steps) {
    for (const ir::Hint hint :
         {ir::Hint::kBulkCopies, ir::Hint::kPersistentBlocks, ir::Hint::kStreamK}) {
      const int32_t value = schedule::HintOf(*step, hint).value_or(0);
      if (value == 0) continue;
      const int32_t most = MostOf(filled, step->stage(), hint, value);
      if (value == most) continue;
      step = schedule::HintStep(step->stage(), hint, most);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln::search
