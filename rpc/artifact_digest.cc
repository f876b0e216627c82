#include "rpc/artifact_digest.h"

#include <fmt/format.h>

#include "base/hash/digest.h"

namespace kiln {
namespace {

// Digests values unambiguously: no two sequences of calls feed the same bytes.
class CanonicalDigest {
 public:
  void Add(std::string_view bytes) { sha_.Update(fmt::format("{}:", bytes.size())).Update(bytes); }
  void Add(int64_t number) { sha_.Update(fmt::format("{};", number)); }
  template <typename T>
  void AddList(const T& numbers) {
    Add(int64_t{numbers.size()});
    for (const auto number : numbers) Add(int64_t{number});
  }
  std::string FinishHex() { return sha_.FinishHex(); }

 private:
  Sha256 sha_;
};

// Writes all digits of both ends, and the run if there is one.
std::string RangeText(const v1::ValueRange& range) {
  const std::string ends = fmt::format("{:a}:{:a}", range.low(), range.high());
  return range.run() == 0 ? ends : fmt::format("{}:{}", ends, range.run());
}

std::string PackingText(const v1::ArgSpec& spec) {
  std::string text = "packed";
  for (const v1::PackedDim& dim : spec.packing())
    text += fmt::format(" {}:{}:{}", dim.axis(), dim.extent(), dim.step());
  return text;
}

}  // namespace

std::string DigestOf(const v1::Artifact& artifact) {
  CanonicalDigest digest;
  digest.Add(artifact.device());
  digest.Add(artifact.binary());
  digest.Add(int64_t{artifact.plan().args_size()});
  for (const v1::ArgSpec& spec : artifact.plan().args()) {
    digest.Add(spec.name());
    digest.Add(spec.dtype());
    digest.AddList(spec.shape());
    digest.Add(int64_t{spec.role()});
    digest.Add(int64_t{spec.alignment_bytes()});
    digest.Add(spec.index_limit());
    if (spec.has_range()) digest.Add(RangeText(spec.range()));
    if (spec.is_packed()) digest.Add(PackingText(spec));
  }
  digest.Add(int64_t{artifact.plan().launches_size()});
  for (const v1::KernelLaunch& kernel : artifact.plan().launches()) {
    digest.Add(kernel.symbol());
    digest.AddList(kernel.grid());
    digest.AddList(kernel.block());
    digest.Add(int64_t{kernel.dynamic_shared_bytes()});
    digest.AddList(kernel.args());
    if (kernel.cluster() > 1) digest.Add(int64_t{kernel.cluster()});
    for (const v1::TensorMap& map : kernel.tensor_maps()) {
      digest.Add("tensor map");
      digest.Add(int64_t{map.arg()});
      digest.Add(int64_t{map.element_bytes()});
      digest.AddList(map.extents());
      digest.AddList(map.strides());
      digest.AddList(map.box());
      digest.Add(int64_t{map.swizzle_bytes()});
    }
    if (kernel.scalars().empty()) continue;
    digest.Add("scalars");
    for (const v1::ScalarArgument& scalar : kernel.scalars()) {
      digest.Add(int64_t{scalar.position()});
      digest.Add(scalar.value());
    }
  }
  return digest.FinishHex();
}

}  // namespace kiln
