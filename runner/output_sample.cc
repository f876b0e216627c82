#include "runner/output_sample.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace kiln::runner {
namespace {

Status CheckGrid(const v1::OutputSample& sample, const Argument& grid, const Argument& output) {
  const auto rank = static_cast<int>(output.shape.size());
  if (grid.dtype != output.dtype || sample.offset_size() != rank || sample.stride_size() != rank ||
      static_cast<int>(grid.shape.size()) != rank) {
    return InvalidArgument("a sample of {} is {}, {} offsets and {} strides", TypeText(output),
                           TypeText(grid), sample.offset_size(), sample.stride_size());
  }
  for (int d = 0; d < rank; ++d) {
    const int64_t extent = output.shape[d], offset = sample.offset(d), stride = sample.stride(d);
    const bool inside = offset >= 0 && offset < extent && stride >= 1 && stride <= extent &&
                        (grid.shape[d] - 1) <= (extent - 1 - offset) / stride;
    if (!inside) {
      return InvalidArgument("a sample has {} elements from {} on, {} apart, in dimension {} of {}",
                             grid.shape[d], offset, stride, d, TypeText(output));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<SampledOutput>> ParseSamples(
    const google::protobuf::RepeatedPtrField<v1::OutputSample>& samples,
    const std::vector<Argument>& program, const std::vector<Argument>& reference) {
  KILN_RETURN_IF_ERROR(CheckSameInputs(program, reference));
  const auto outputs = OfRole(program, v1::ArgSpec::OUTPUT);
  const auto grids = OfRole(reference, v1::ArgSpec::OUTPUT);
  if (static_cast<int>(grids.size()) != samples.size()) {
    return InvalidArgument("{} samples for {} outputs of the reference", samples.size(),
                           grids.size());
  }
  std::vector<SampledOutput> parsed;
  for (int i = 0; i < samples.size(); ++i) {
    const v1::OutputSample& sample = samples[i];
    if (sample.output() >= outputs.size()) {
      return InvalidArgument("a sample of output {}, the program has {}", sample.output(),
                             outputs.size());
    }
    const Argument& output = *outputs[sample.output()];
    KILN_RETURN_IF_ERROR(CheckGrid(sample, *grids[i], output));
    SampledOutput one;
    one.output = static_cast<int>(sample.output());
    one.argument = *grids[i];
    one.argument.name =
        fmt::format("{} at [{}] + [{}] * element", output.name, fmt::join(sample.offset(), ", "),
                    fmt::join(sample.stride(), ", "));
    one.offset.assign(sample.offset().begin(), sample.offset().end());
    one.stride.assign(sample.stride().begin(), sample.stride().end());
    parsed.push_back(std::move(one));
  }
  return parsed;
}

int64_t ElementsOf(std::span<const SampledOutput> samples) {
  int64_t elements = 0;
  for (const SampledOutput& sample : samples) elements += sample.argument.elements;
  return elements;
}

PrivateBytes Gather(const SampledOutput& sample, const Argument& output,
                    std::span<const std::byte> bytes) {
  const auto size = static_cast<size_t>(output.bytes / output.elements);
  PrivateBytes gathered(static_cast<size_t>(sample.argument.bytes));
  // Position in the grid.
  std::vector<int64_t> at(output.shape.size(), 0);
  for (int64_t i = 0; i < sample.argument.elements; ++i) {
    int64_t place = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      place = place * output.shape[d] + sample.offset[d] + sample.stride[d] * at[d];
    }
    std::memcpy(gathered.data() + static_cast<size_t>(i) * size,
                bytes.data() + static_cast<size_t>(place) * size, size);
    for (size_t d = at.size(); d-- > 0 && ++at[d] == sample.argument.shape[d];) at[d] = 0;
  }
  return gathered;
}

int64_t CountUnwritten(const Argument& output, std::span<const std::byte> bytes, Poison poison) {
  if (!IsFloat(output.dtype)) return 0;
  const auto size = static_cast<size_t>(output.bytes / output.elements);
  const std::vector<std::byte> unwritten(size, std::byte{PoisonByte(output.dtype, poison)});
  int64_t count = 0;
  for (size_t at = 0; at < bytes.size(); at += size) {
    count += std::memcmp(bytes.data() + at, unwritten.data(), size) == 0;
  }
  return count;
}

}  // namespace kiln::runner
