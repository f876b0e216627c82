#include "runtime/live_ranges.h"

#include <algorithm>
#include <limits>

namespace kiln::runtime {

LiveRanges LiveRangesOf(const Network& network) {
  struct Range {
    int32_t first = std::numeric_limits<int32_t>::max();
    int32_t last = -1;
  };
  std::vector<Range> ranges(network.buffers.size());
  const auto touch = [&](int32_t buffer, int32_t kernel) {
    Range& range = ranges[static_cast<size_t>(RegionOf(network, buffer).root)];
    range.first = std::min(range.first, kernel);
    range.last = std::max(range.last, kernel);
  };
  const auto num_kernels = static_cast<int32_t>(network.kernels.size());
  for (int32_t k = 0; k < num_kernels; ++k) {
    for (const KernelArgument& arg : network.kernels[static_cast<size_t>(k)].args) {
      touch(arg.buffer, k);
    }
  }
  for (const NetworkTensor& output : network.outputs) touch(output.buffer, num_kernels);
  LiveRanges live;
  for (size_t i = 0; i < network.buffers.size(); ++i) {
    const NetworkBuffer& buffer = network.buffers[i];
    if (buffer.place != Place::kArena || ranges[i].last < 0) continue;
    live.buffers.push_back(static_cast<int32_t>(i));
    live.needs.push_back({.bytes = buffer.bytes,
                          .alignment_bytes = buffer.alignment_bytes,
                          .first = ranges[i].first,
                          .last = ranges[i].last});
  }
  return live;
}

}  // namespace kiln::runtime
