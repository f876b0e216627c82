#include "runtime/network.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "base/numbers/integers.h"
#include "runtime/dtype.h"
#include "runtime/live_ranges.h"
#include "runtime/memory_plan.h"

namespace kiln::runtime {
namespace {

// Limit of inputs, outputs, constants, buffers, kernels and binaries.
constexpr size_t kMaxItems = 1 << 20;
// Limit of arguments and launches.
constexpr size_t kMaxPerKernel = 1 << 12;
constexpr size_t kMaxNameBytes = 1 << 14;
constexpr size_t kMaxDimensions = 32;
constexpr size_t kMaxPackedDimensions = 256;
// Limit of any size.
constexpr int64_t kMaxBytes = int64_t{1} << 46;

Status CheckCount(std::string_view what, size_t count, size_t most) {
  if (count <= most) return OkStatus();
  return InvalidArgument("{} {}, at most {} are allowed", count, what, most);
}

Status CheckName(std::string_view what, std::string_view name) {
  if (name.size() <= kMaxNameBytes) return OkStatus();
  return InvalidArgument("its {} has {} bytes, at most {} are allowed", what, name.size(),
                         kMaxNameBytes);
}

Status CheckNumber(std::string_view what, int64_t number, size_t count) {
  if (number >= 0 && number < static_cast<int64_t>(count)) return OkStatus();
  return InvalidArgument("it names {} {}, and there are {}", what, number, count);
}

Status CheckTarget(const NetworkTarget& target) {
  if (target.kind.empty()) return InvalidArgument("the target has no kind");
  KILN_RETURN_IF_ERROR(CheckName("kind of target", target.kind));
  KILN_RETURN_IF_ERROR(CheckName("architecture", target.arch));
  KILN_RETURN_IF_ERROR(CheckName("device", target.device));
  KILN_RETURN_IF_ERROR(CheckName("target", target.text));
  KILN_RETURN_IF_ERROR(CheckCount("features of a CPU", target.features.size(), kMaxPerKernel));
  for (const std::string& feature : target.features) {
    KILN_RETURN_IF_ERROR(CheckName("feature", feature));
  }
  return OkStatus();
}

Status CheckRange(const NetworkBuffer& buffer, std::string_view what, int64_t size) {
  if (buffer.offset >= 0 && buffer.offset <= size && buffer.bytes <= size - buffer.offset) {
    return OkStatus();
  }
  return InvalidArgument("bytes {} to {} are outside of {} of {} bytes", buffer.offset,
                         buffer.offset + buffer.bytes, what, size);
}

Status CheckView(const Network& network, const NetworkBuffer& buffer) {
  KILN_RETURN_IF_ERROR(CheckNumber("buffer", buffer.viewed, network.buffers.size()));
  const NetworkBuffer& viewed = network.buffers[static_cast<size_t>(buffer.viewed)];
  if (viewed.place == Place::kView) {
    return InvalidArgument("a view of buffer {}, which is a view itself", buffer.viewed);
  }
  if (buffer.alignment_bytes > viewed.alignment_bytes) {
    return InvalidArgument("a view aligned to {} bytes of buffer {}, which is aligned to {}",
                           buffer.alignment_bytes, buffer.viewed, viewed.alignment_bytes);
  }
  return CheckRange(buffer, "the viewed buffer", viewed.bytes);
}

Status CheckBuffer(const Network& network, size_t number) {
  const NetworkBuffer& buffer = network.buffers[number];
  // Inputs and constants may have no elements.
  const bool may_be_empty = buffer.place == Place::kInput || buffer.place == Place::kConstant;
  const int64_t least = may_be_empty ? 0 : 1;
  if (buffer.bytes < least || buffer.bytes > kMaxBytes) {
    return InvalidArgument("its size is {} bytes, expected {} to 2^46", buffer.bytes, least);
  }
  const int64_t alignment = buffer.alignment_bytes;
  if (alignment < 1 || alignment > kMaxAlignmentBytes ||
      !std::has_single_bit(static_cast<uint64_t>(alignment))) {
    return InvalidArgument("its alignment is {}, expected a power of two, at most {}", alignment,
                           kMaxAlignmentBytes);
  }
  if (std::abs(buffer.offset) > kMaxBytes || buffer.offset % alignment != 0) {
    return InvalidArgument("its offset {} is no multiple of its alignment {}", buffer.offset,
                           alignment);
  }
  switch (buffer.place) {
    case Place::kConstant:
      return CheckRange(buffer, "the constants", network.constants_bytes);
    case Place::kArena:
      return CheckRange(buffer, "the arena", network.arena_bytes);
    case Place::kView:
      return CheckView(network, buffer);
    default:
      if (buffer.offset == 0) return OkStatus();
      return InvalidArgument("its offset is {}, expected 0 of an input or output", buffer.offset);
  }
}

Status CheckBuffers(const Network& network) {
  for (size_t i = 0; i < network.buffers.size(); ++i) {
    KILN_RETURN_IF_ERROR(Annotate(CheckBuffer(network, i), fmt::format("buffer {}", i)));
  }
  return OkStatus();
}

Status CheckTensorPacking(const NetworkTensor& tensor) {
  if (!tensor.packing) return OkStatus();
  KILN_RETURN_IF_ERROR(
      CheckCount("packed dimensions", tensor.packing->dims.size(), kMaxPackedDimensions));
  if (tensor.packing->shape != tensor.shape)
    return InvalidArgument("what it is packed of has another shape than it");
  return CheckPacking(*tensor.packing);
}

Status CheckTensor(const Network& network, const NetworkTensor& tensor) {
  KILN_RETURN_IF_ERROR(CheckName("name", tensor.name));
  KILN_ASSIGN_OR_RETURN(const DType dtype, ParseDType(tensor.dtype));
  KILN_RETURN_IF_ERROR(CheckCount("dimensions", tensor.shape.size(), kMaxDimensions));
  for (int64_t extent : tensor.shape) {
    if (extent < 0) return InvalidArgument("an extent of its shape is {}", extent);
  }
  KILN_RETURN_IF_ERROR(CheckNumber("buffer", tensor.buffer, network.buffers.size()));
  KILN_RETURN_IF_ERROR(CheckTensorPacking(tensor));
  const int64_t elements =
      tensor.packing ? PackedElements(*tensor.packing) : ProductOfCounts(tensor.shape);
  const int64_t bytes = MultiplyCounts(elements, DTypeBytes(dtype));
  const NetworkBuffer& buffer = network.buffers[static_cast<size_t>(tensor.buffer)];
  if (buffer.bytes == bytes) return OkStatus();
  return InvalidArgument("it takes {} bytes, its buffer {} has {}", bytes, tensor.buffer,
                         buffer.bytes);
}

// Checks that inputs and their buffers correspond one to one, and constants and theirs too, and
// that output buffers belong to an output.
Status CheckTensors(const Network& network) {
  std::vector<bool> owned(network.buffers.size());
  for (const auto* tensors : {&network.inputs, &network.outputs}) {
    for (const NetworkTensor& tensor : *tensors) {
      if (tensor.packing)
        return InvalidArgument("'{}' is packed, expected that of constants alone", tensor.name);
    }
  }
  for (const NetworkTensor& input : network.inputs) {
    const auto context = [&] { return fmt::format("input '{}'", input.name); };
    KILN_RETURN_IF_ERROR(Annotate(CheckTensor(network, input), context()));
    const auto buffer = static_cast<size_t>(input.buffer);
    if (network.buffers[buffer].place != Place::kInput || owned[buffer]) {
      return InvalidArgument("{}: buffer {} is not an input of its own", context(), buffer);
    }
    owned[buffer] = true;
  }
  for (const NetworkTensor& output : network.outputs) {
    KILN_RETURN_IF_ERROR(
        Annotate(CheckTensor(network, output), fmt::format("output '{}'", output.name)));
    owned[static_cast<size_t>(output.buffer)] = true;
  }
  // Buffers that constants name.
  std::vector<bool> named(network.buffers.size()), packed(network.buffers.size());
  for (const NetworkTensor& constant : network.constants) {
    const auto context = [&] { return fmt::format("constant '{}'", constant.name); };
    KILN_RETURN_IF_ERROR(Annotate(CheckTensor(network, constant), context()));
    const auto buffer = static_cast<size_t>(constant.buffer);
    if (network.buffers[buffer].place != Place::kConstant)
      return InvalidArgument("{}: buffer {} is no constant", context(), buffer);
    if (named[buffer]) {
      return InvalidArgument("{}: buffer {} is that of another constant", context(), buffer);
    }
    named[buffer] = true;
    packed[buffer] = constant.packing.has_value();
  }
  for (const NetworkTensor& output : network.outputs) {
    if (!packed[static_cast<size_t>(RegionOf(network, output.buffer).root)]) continue;
    return InvalidArgument("output '{}' is buffer {}, which holds a constant packed", output.name,
                           output.buffer);
  }
  for (size_t i = 0; i < network.buffers.size(); ++i) {
    const Place place = network.buffers[i].place;
    if (owned[i] || (place != Place::kInput && place != Place::kOutput)) continue;
    return InvalidArgument("buffer {} is that of an {}, and no {} names it", i, PlaceName(place),
                           PlaceName(place));
  }
  return OkStatus();
}

Status CheckTensorMaps(const Network& network, const NetworkKernel& kernel,
                       const NetworkLaunch& launch) {
  KILN_RETURN_IF_ERROR(CheckCount("tensor maps", launch.tensor_maps.size(), kMaxPerKernel));
  for (const TensorMap& map : launch.tensor_maps) {
    KILN_RETURN_IF_ERROR(CheckTensorMap(map));
    KILN_RETURN_IF_ERROR(CheckNumber("argument", map.arg, kernel.args.size()));
    const int64_t bytes = network.buffers[static_cast<size_t>(kernel.args[map.arg].buffer)].bytes;
    if (ReachedBytes(map) <= bytes) continue;
    return InvalidArgument("a launch of '{}' maps {} bytes of a buffer of {}", launch.symbol,
                           ReachedBytes(map), bytes);
  }
  return OkStatus();
}

Status CheckLaunch(const Network& network, const NetworkKernel& kernel,
                   const NetworkLaunch& launch) {
  KILN_RETURN_IF_ERROR(CheckName("symbol", launch.symbol));
  if (launch.symbol.empty() || launch.symbol.find('\0') != std::string::npos) {
    return InvalidArgument("the symbol of a launch is empty, or has a zero in it");
  }
  for (int axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] >= 1 && launch.block[axis] >= 1) continue;
    return InvalidArgument("a launch of '{}' has a grid or block of extent 0", launch.symbol);
  }
  KILN_RETURN_IF_ERROR(CheckCount("arguments of a launch", launch.args.size(), kMaxPerKernel));
  for (uint32_t arg : launch.args) {
    KILN_RETURN_IF_ERROR(CheckNumber("argument", arg, kernel.args.size()));
  }
  return CheckTensorMaps(network, kernel, launch);
}

Status CheckLaunches(const Network& network, const NetworkKernel& kernel) {
  if (kernel.launches.empty()) return InvalidArgument("it launches nothing");
  KILN_RETURN_IF_ERROR(CheckCount("launches", kernel.launches.size(), kMaxPerKernel));
  for (const NetworkLaunch& launch : kernel.launches) {
    KILN_RETURN_IF_ERROR(CheckLaunch(network, kernel, launch));
  }
  return OkStatus();
}

Status CheckKernel(const Network& network, const NetworkKernel& kernel) {
  KILN_RETURN_IF_ERROR(CheckName("name", kernel.name));
  KILN_RETURN_IF_ERROR(CheckName("workload key", kernel.workload_key));
  KILN_RETURN_IF_ERROR(CheckName("record", kernel.record));
  KILN_RETURN_IF_ERROR(CheckNumber("binary", kernel.binary, network.binaries.size()));
  KILN_RETURN_IF_ERROR(CheckCount("arguments", kernel.args.size(), kMaxPerKernel));
  for (const KernelArgument& arg : kernel.args) {
    KILN_RETURN_IF_ERROR(CheckNumber("buffer", arg.buffer, network.buffers.size()));
  }
  for (double number : {kernel.expected_s, kernel.flops, kernel.bytes}) {
    if (!(number >= 0 && std::isfinite(number))) {
      return InvalidArgument("its cost or size is {}, expected a number that is not negative",
                             number);
    }
  }
  return CheckLaunches(network, kernel);
}

// Checks that no kernel reads a buffer before the first write, or writes one that must not be
// written.
Status CheckDataFlow(const Network& network) {
  std::vector<bool> filled(network.buffers.size());
  for (size_t i = 0; i < filled.size(); ++i) {
    const Place place = network.buffers[i].place;
    filled[i] = place == Place::kInput || place == Place::kConstant;
  }
  for (size_t k = 0; k < network.kernels.size(); ++k) {
    const NetworkKernel& kernel = network.kernels[k];
    for (const KernelArgument& arg : kernel.args) {
      const auto root = static_cast<size_t>(RegionOf(network, arg.buffer).root);
      const Place place = network.buffers[root].place;
      if (arg.written && (place == Place::kInput || place == Place::kConstant)) {
        return InvalidArgument("kernel {} ('{}') writes buffer {}, and {} buffers are read only", k,
                               kernel.name, arg.buffer, PlaceName(place));
      }
      if (!arg.written && !filled[root]) {
        return InvalidArgument("kernel {} ('{}') reads buffer {}, which nothing has written", k,
                               kernel.name, arg.buffer);
      }
    }
    for (const KernelArgument& arg : kernel.args) {
      if (arg.written) filled[static_cast<size_t>(RegionOf(network, arg.buffer).root)] = true;
    }
  }
  for (const NetworkTensor& output : network.outputs) {
    if (filled[static_cast<size_t>(RegionOf(network, output.buffer).root)]) continue;
    return InvalidArgument("output '{}' is buffer {}, which nothing writes", output.name,
                           output.buffer);
  }
  return OkStatus();
}

Status CheckArena(const Network& network) {
  int64_t end = 0;
  for (const NetworkBuffer& buffer : network.buffers) {
    if (buffer.place == Place::kArena) end = std::max(end, buffer.offset + buffer.bytes);
  }
  if (network.arena_bytes != end) {
    return InvalidArgument("the arena has {} bytes, its buffers end at {}", network.arena_bytes,
                           end);
  }
  const LiveRanges live = LiveRangesOf(network);
  std::vector<int64_t> offsets;
  for (int32_t buffer : live.buffers) {
    offsets.push_back(network.buffers[static_cast<size_t>(buffer)].offset);
  }
  const std::optional<MemoryConflict> conflict = FindConflict(live.needs, offsets);
  if (!conflict) return OkStatus();
  return InvalidArgument("buffers {} and {} share memory of the arena, and kernel {} needs both",
                         live.buffers[conflict->a], live.buffers[conflict->b], conflict->at);
}

Status CheckConstants(const Network& network) {
  std::vector<size_t> constants;
  for (size_t i = 0; i < network.buffers.size(); ++i) {
    if (network.buffers[i].place == Place::kConstant) constants.push_back(i);
  }
  const auto offset = [&](size_t i) { return network.buffers[i].offset; };
  std::sort(constants.begin(), constants.end(),
            [&](size_t a, size_t b) { return offset(a) < offset(b); });
  for (size_t i = 1; i < constants.size(); ++i) {
    const size_t before = constants[i - 1];
    if (offset(before) + network.buffers[before].bytes <= offset(constants[i])) continue;
    return InvalidArgument("constants {} and {} overlap", before, constants[i]);
  }
  return OkStatus();
}

Status CheckCounts(const Network& network) {
  KILN_RETURN_IF_ERROR(CheckCount("inputs", network.inputs.size(), kMaxItems));
  KILN_RETURN_IF_ERROR(CheckCount("outputs", network.outputs.size(), kMaxItems));
  KILN_RETURN_IF_ERROR(CheckCount("constants", network.constants.size(), kMaxItems));
  KILN_RETURN_IF_ERROR(CheckCount("buffers", network.buffers.size(), kMaxItems));
  KILN_RETURN_IF_ERROR(CheckCount("kernels", network.kernels.size(), kMaxItems));
  KILN_RETURN_IF_ERROR(CheckCount("binaries", network.binaries.size(), kMaxItems));
  for (int64_t bytes : {network.arena_bytes, network.constants_bytes}) {
    if (bytes >= 0 && bytes <= kMaxBytes) continue;
    return InvalidArgument("the arena or the constants have {} bytes, expected 0 to 2^46", bytes);
  }
  return OkStatus();
}

}  // namespace

std::string_view PlaceName(Place place) {
  constexpr std::string_view kNames[] = {"input", "output", "constant", "arena", "view"};
  return kNames[static_cast<size_t>(place)];
}

std::string_view SourceName(KernelSource source) {
  constexpr std::string_view kNames[] = {"tuned", "reused", "untuned"};
  return kNames[static_cast<size_t>(source)];
}

Region RegionOf(const Network& network, int32_t number) {
  const NetworkBuffer& buffer = network.buffers[static_cast<size_t>(number)];
  if (buffer.place == Place::kView) return {buffer.viewed, buffer.offset, buffer.bytes};
  return {number, 0, buffer.bytes};
}

const Packing* PackingOf(const Network& network, int32_t buffer) {
  for (const NetworkTensor& constant : network.constants) {
    if (constant.buffer == buffer && constant.packing) return &*constant.packing;
  }
  return nullptr;
}

bool IsWrittenInPlace(const Network& network, size_t index) {
  const int32_t buffer = network.outputs[index].buffer;
  if (network.buffers[static_cast<size_t>(buffer)].place != Place::kOutput) return false;
  // The first output that names the buffer owns it.
  for (size_t i = 0; i < index; ++i) {
    if (network.outputs[i].buffer == buffer) return false;
  }
  return true;
}

Status CheckNetwork(const Network& network) {
  KILN_RETURN_IF_ERROR(CheckCounts(network));
  KILN_RETURN_IF_ERROR(CheckTarget(network.target));
  KILN_RETURN_IF_ERROR(CheckBuffers(network));
  KILN_RETURN_IF_ERROR(CheckTensors(network));
  for (size_t k = 0; k < network.kernels.size(); ++k) {
    const NetworkKernel& kernel = network.kernels[k];
    KILN_RETURN_IF_ERROR(Annotate(CheckKernel(network, kernel), fmt::format("kernel {}", k)));
  }
  KILN_RETURN_IF_ERROR(CheckDataFlow(network));
  KILN_RETURN_IF_ERROR(CheckArena(network));
  return CheckConstants(network);
}

}  // namespace kiln::runtime
