#include "base/arrays/packing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace kiln {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 60;

// Returns the product, or -1 if it is more than kMaxElements.
int64_t Elements(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > kMaxElements) return -1;
  }
  return elements;
}

// Returns whether the sums of steps reach every index of the axis. They do if no step is longer by
// more than one than the reach of the shorter steps.
bool Covers(const Packing& packing, int32_t axis) {
  std::vector<PackedDim> along;
  for (const PackedDim& dim : packing.dims) {
    if (dim.axis == axis) along.push_back(dim);
  }
  std::ranges::sort(along, {}, &PackedDim::step);
  const int64_t last = packing.shape[static_cast<size_t>(axis)] - 1;
  int64_t reached = 0;
  for (const PackedDim& dim : along) {
    if (reached >= last) return true;
    if (dim.step > reached + 1) return false;
    int64_t more = 0;
    if (__builtin_mul_overflow(dim.step, dim.extent - 1, &more) || more > last - reached) {
      return true;
    }
    reached += more;
  }
  return reached >= last;
}

class Packer {
 public:
  Packer(const Packing& packing, int64_t element_bytes, std::span<const std::byte> plain,
         std::span<std::byte> packed)
      : packing_(packing),
        element_bytes_(static_cast<size_t>(element_bytes)),
        plain_(plain.data()),
        to_(packed.data()),
        index_(packing.shape.size(), 0),
        strides_(packing.shape.size(), 1) {
    for (size_t axis = strides_.size(); axis-- > 1;)
      strides_[axis - 1] = strides_[axis] * packing.shape[axis];
  }

  // Copies the dimensions from d on, at the place that index_ says.
  void Run(size_t d) {
    if (d == packing_.dims.size()) return Copy(Offset(), 1, 0);
    const PackedDim& dim = packing_.dims[d];
    const auto axis = static_cast<size_t>(dim.axis);
    if (d + 1 == packing_.dims.size()) return CopyInnermost(dim, axis);
    for (int64_t v = 0; v < dim.extent; ++v) {
      Run(d + 1);
      index_[axis] += dim.step;
    }
    index_[axis] -= dim.extent * dim.step;
  }

 private:
  // Returns the offset of index_ in the plain array; -1: index_ is beyond the end.
  int64_t Offset() const {
    int64_t offset = 0;
    for (size_t axis = 0; axis < index_.size(); ++axis) {
      if (index_[axis] >= packing_.shape[axis]) return -1;
      offset += index_[axis] * strides_[axis];
    }
    return offset;
  }

  void CopyInnermost(const PackedDim& dim, size_t axis) {
    const int64_t offset = Offset();
    const int64_t left = packing_.shape[axis] - index_[axis];
    const int64_t inside = offset < 0 ? 0 : std::min(dim.extent, (left + dim.step - 1) / dim.step);
    Copy(offset, inside, dim.step * strides_[axis]);
    const size_t zeros = static_cast<size_t>(dim.extent - inside) * element_bytes_;
    std::memset(to_, 0, zeros);
    to_ += zeros;
  }

  void Copy(int64_t offset, int64_t count, int64_t stride) {
    const std::byte* from =
        plain_ + static_cast<size_t>(std::max<int64_t>(0, offset)) * element_bytes_;
    if (stride == 1) {
      const size_t bytes = static_cast<size_t>(count) * element_bytes_;
      std::memcpy(to_, from, bytes);
      to_ += bytes;
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to_, from, element_bytes_);
      to_ += element_bytes_;
      from += static_cast<size_t>(stride) * element_bytes_;
    }
  }

  const Packing& packing_;
  const size_t element_bytes_;
  const std::byte* plain_;
  std::byte* to_;
  std::vector<int64_t> index_, strides_;
};

}  // namespace

Status CheckPacking(const Packing& packing) {
  const auto axes = static_cast<int64_t>(packing.shape.size());
  for (const int64_t extent : packing.shape) {
    if (extent < 1)
      return InvalidArgument("a packed array of extent {}, expected 1 or more", extent);
  }
  for (const PackedDim& dim : packing.dims) {
    if (dim.axis < 0 || dim.axis >= axes) {
      return InvalidArgument("packed along axis {}, expected one below {}", dim.axis, axes);
    }
    if (dim.extent < 1 || dim.step < 1) {
      return InvalidArgument("packed with extent {} and step {}, expected 1 or more", dim.extent,
                             dim.step);
    }
  }
  const std::vector<int64_t> packed = PackedShape(packing);
  if (Elements(packing.shape) < 0 || Elements(packed) < 0) {
    return InvalidArgument("packed [{}] of [{}] has too many elements", fmt::join(packed, ", "),
                           fmt::join(packing.shape, ", "));
  }
  for (int32_t axis = 0; axis < axes; ++axis) {
    if (!Covers(packing, axis)) {
      return InvalidArgument("packed {} leaves out elements along axis {}", PackingText(packing),
                             axis);
    }
  }
  return OkStatus();
}

std::vector<int64_t> PackedShape(const Packing& packing) {
  std::vector<int64_t> shape;
  for (const PackedDim& dim : packing.dims) shape.push_back(dim.extent);
  return shape;
}

int64_t PackedElements(const Packing& packing) { return Elements(PackedShape(packing)); }

void Pack(const Packing& packing, int64_t element_bytes, std::span<const std::byte> plain,
          std::span<std::byte> packed) {
  KILN_CHECK(static_cast<int64_t>(plain.size()) == Elements(packing.shape) * element_bytes &&
                 static_cast<int64_t>(packed.size()) == PackedElements(packing) * element_bytes,
             "packing {} bytes of {} into {}", plain.size(), PackingText(packing), packed.size());
  Packer(packing, element_bytes, plain, packed).Run(0);
}

std::string PackingText(const Packing& packing) {
  std::string dims;
  for (const PackedDim& dim : packing.dims)
    dims += fmt::format("{}{}: {}", dims.empty() ? "" : ", ", dim.axis, dim.step);
  return fmt::format("[{}] by [{}]", fmt::join(packing.shape, ", "), dims);
}

}  // namespace kiln
