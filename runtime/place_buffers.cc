#include "runtime/place_buffers.h"

#include <algorithm>

#include "base/numbers/integers.h"
#include "runtime/live_ranges.h"
#include "runtime/memory_plan.h"

namespace kiln::runtime {
namespace {

// Checks the assumptions of the functions here. CheckNetwork checks them too, but only with offsets
// in place.
Status CheckPlaceable(const Network& network) {
  const auto count = static_cast<int64_t>(network.buffers.size());
  const auto check = [&](int32_t buffer) {
    if (buffer >= 0 && buffer < count) return OkStatus();
    return InvalidArgument("there is no buffer {}, expected one below {}", buffer, count);
  };
  for (const NetworkBuffer& buffer : network.buffers) {
    KILN_RETURN_IF_ERROR(check(buffer.viewed));
    const bool may_be_empty = buffer.place == Place::kInput || buffer.place == Place::kConstant;
    if (buffer.bytes >= (may_be_empty ? 0 : 1) && buffer.alignment_bytes >= 1) continue;
    return InvalidArgument("a buffer has {} bytes and alignment {}", buffer.bytes,
                           buffer.alignment_bytes);
  }
  for (const NetworkKernel& kernel : network.kernels) {
    for (const KernelArgument& arg : kernel.args) KILN_RETURN_IF_ERROR(check(arg.buffer));
  }
  for (const NetworkTensor& output : network.outputs) KILN_RETURN_IF_ERROR(check(output.buffer));
  return OkStatus();
}

// Places buffers one behind the other.
int64_t PlaceInTurn(Network& network, Place place) {
  int64_t end = 0;
  for (NetworkBuffer& buffer : network.buffers) {
    if (buffer.place != place) continue;
    buffer.offset = RoundUp(end, buffer.alignment_bytes);
    end = buffer.offset + buffer.bytes;
  }
  return end;
}

PlacedMemory PlaceArena(Network& network) {
  for (NetworkBuffer& buffer : network.buffers) {
    // Buffers that no kernel touches stay at the start, where they do no harm.
    if (buffer.place == Place::kArena) buffer.offset = 0;
  }
  const LiveRanges live = LiveRangesOf(network);
  const MemoryPlan plan = PlanMemory(live.needs);
  for (size_t i = 0; i < live.buffers.size(); ++i) {
    network.buffers[static_cast<size_t>(live.buffers[i])].offset = plan.offsets[i];
  }
  PlacedMemory placed{.peak_bytes = PeakBytes(live.needs)};
  for (const NetworkBuffer& buffer : network.buffers) {
    if (buffer.place != Place::kArena) continue;
    placed.arena_bytes = std::max(placed.arena_bytes, buffer.offset + buffer.bytes);
    placed.sum_bytes += buffer.bytes;
  }
  return placed;
}

}  // namespace

StatusOr<PlacedMemory> PlaceBuffers(Network& network) {
  KILN_RETURN_IF_ERROR(CheckPlaceable(network));
  network.constants_bytes = PlaceInTurn(network, Place::kConstant);
  const PlacedMemory placed = PlaceArena(network);
  network.arena_bytes = placed.arena_bytes;
  KILN_RETURN_IF_ERROR(CheckNetwork(network));
  return placed;
}

}  // namespace kiln::runtime
