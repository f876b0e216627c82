#include "search/space/matrix_rows.h"

#include <algorithm>
#include <bit>

#include "base/numbers/integers.h"
#include "compiler/instructions/matrix_unit.h"

namespace kiln::search {
namespace {

// Threads of rows in a warp, and warps of a group.
constexpr int64_t kLanes = instructions::kThreadRows, kWarps = instructions::kWarpgroupWarps;

// Where the row of a thread lies.
int64_t PlaceOf(std::span<const RowsOfAxis> axes, int64_t thread) {
  int64_t place = 0;
  for (size_t i = axes.size(); i-- > 0; thread /= axes[i].threads)
    place += thread % axes[i].threads * axes[i].apart;
  return place;
}

// Where the rows of the first thread lie, ascending.
std::vector<int64_t> RowsOfThread(std::span<const RowsOfAxis> axes) {
  std::vector<int64_t> places = {0};
  for (const RowsOfAxis& axis : axes) {
    std::vector<int64_t> more;
    for (const int64_t place : places) {
      for (int64_t v = 0; v < axis.vthreads; ++v)
        more.push_back(place + v * axis.threads * axis.apart);
    }
    places = std::move(more);
  }
  std::ranges::sort(places);
  return places;
}

}  // namespace

bool FollowInMemory(std::span<const RowsOfAxis> axes) {
  int64_t threads = 1;
  for (const RowsOfAxis& axis : axes) threads *= axis.threads;
  if (threads % (kLanes * kWarps) != 0) return false;
  for (int64_t thread = 0; thread < kLanes * kWarps; ++thread) {
    if (PlaceOf(axes, thread) != thread / kLanes * 2 * kLanes + thread % kLanes) return false;
  }
  // Of each 64 rows; those of other groups of warps and of other 64 rows are wherever they are.
  const std::vector<int64_t> own = RowsOfThread(axes);
  if (own.size() % 2 != 0) return false;
  for (size_t i = 0; i < own.size(); i += 2) {
    if (own[i + 1] - own[i] != kLanes || own[i] % kLanes != 0) return false;
  }
  for (int64_t thread = 0; thread < threads; thread += kLanes) {
    if (PlaceOf(axes, thread) % kLanes != 0) return false;
    if (thread % (kLanes * kWarps) == 0) continue;
    const int64_t first = thread / (kLanes * kWarps) * (kLanes * kWarps);
    if (PlaceOf(axes, thread) - PlaceOf(axes, first) != 2 * (thread - first)) return false;
  }
  return true;
}

bool HasRowsInOrder(const MatrixProduct& product, std::span<const std::vector<int64_t>> lengths,
                    std::span<const int64_t> fetched) {
  const ir::Expr load = product.first;
  const std::span<const MatrixAxis> axes = product.TiledAxes(lengths.size());
  if (axes.empty() || !product.IsAlongDepth(load) || load->num_args < 2) return false;
  const size_t before = product.axes.size() - lengths.size();
  std::vector<int64_t> shape(load->num_args, 1);
  std::vector<std::pair<size_t, RowsOfAxis>> rows;  // by dimension
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::vector<int64_t>& t = lengths[i];
    if (axes[i] != MatrixAxis::kRow || ProductOfCounts(t) == 1) continue;
    const int axis = static_cast<int>(before + i);
    const std::optional<int> dimension = DimensionOf(load, axis);
    if (!dimension || !MovesByOne(load, axis) || t[2] * t[3] != 1) return false;
    const auto d = static_cast<size_t>(*dimension);
    if (d + 1 == shape.size() || shape[d] != 1) return false;
    shape[d] = ProductOfCounts(t);
    rows.push_back({d, {.vthreads = t[0], .threads = t[1]}});
  }
  if (!fetched.empty()) std::ranges::copy(fetched, shape.begin());
  std::vector<RowsOfAxis> found;
  for (auto& [d, axis] : rows) {
    axis.apart = ProductOfCounts(std::span(shape).subspan(d + 1, shape.size() - d - 2));
    found.push_back(axis);
  }
  return FollowInMemory(found);
}

std::vector<std::vector<int64_t>> RandomRowsInOrder(std::span<const int64_t> extents,
                                                    int64_t groups, int64_t rows, Rng& rng) {
  std::vector<std::vector<int64_t>> tile(extents.size(), {1, 1});
  size_t axis = extents.size();
  // Goes to the next axis out; false: there is none.
  const auto leave = [&] { return axis-- > 1; };
  const auto has_room = [&](int64_t times) {
    return tile[axis - 1][0] * tile[axis - 1][1] * times <=
           static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extents[axis - 1])));
  };
  // A power of two, over this axis and others further out.
  const auto share_out = [&](int64_t threads) {
    for (; threads > 1; threads /= 2) {
      while (!has_room(2) || Chance(rng, 0.15)) {
        if (!leave()) return false;
      }
      tile[axis - 1][1] *= 2;
    }
    return true;
  };
  if (!share_out(kLanes)) return {};
  while (!has_room(2) || Chance(rng, 0.3)) {
    if (!leave()) return {};
  }
  // Threads of the same axis would stand between the two rows.
  tile[axis - 1][0] = 2;
  if (!leave()) return {};
  if (!share_out(kWarps)) return {};
  if (groups > 1 && !has_room(groups) && (!leave() || !has_room(groups))) return {};
  tile[axis - 1][1] *= groups;
  if (rows > 2) {
    while (!has_room(rows / 2)) {
      if (!leave()) return {};
    }
    tile[axis - 1][0] *= rows / 2;
  }
  return tile;
}

}  // namespace kiln::search
