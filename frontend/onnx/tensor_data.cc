#include "frontend/onnx/tensor_data.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

#include "base/numbers/integers.h"
#include "frontend/onnx/element_type.h"

namespace kiln::frontend {
namespace {

using graph::Constant;
using graph::ConstantPtr;
using graph::TensorType;

constexpr int kMaxDims = 32;
constexpr int64_t kMaxExtent = int64_t{1} << 40;

StatusOr<std::vector<int64_t>> ReadShape(const ::onnx::TensorProto& proto) {
  if (proto.dims_size() > kMaxDims) {
    return InvalidArgument("it has {} dimensions, expected at most {}", proto.dims_size(),
                           kMaxDims);
  }
  for (int64_t dim : proto.dims()) {
    if (dim < 0 || dim > kMaxExtent) return InvalidArgument("it has an extent of {}", dim);
  }
  return std::vector<int64_t>(proto.dims().begin(), proto.dims().end());
}

// Returns bytes that `owner` keeps as a constant. Bools are made 0 or 1, and bytes that are not
// aligned to their elements are moved: both copy.
StatusOr<ConstantPtr> FromBytes(const TensorType& type, std::shared_ptr<const void> owner,
                                std::span<const std::byte> bytes) {
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(bytes.data()) % static_cast<size_t>(type.type.bytes()) == 0;
  const bool is_normal = !type.type.is_bool() || std::ranges::all_of(bytes, [](std::byte b) {
    return b == std::byte{0} || b == std::byte{1};
  });
  if (is_aligned && is_normal) return Constant::FromMemory(type, std::move(owner), bytes);
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  if (!is_normal) {
    for (std::byte& b : *copy) b = std::byte{b != std::byte{0}};
  }
  const std::span<const std::byte> copied = *copy;
  return Constant::FromMemory(type, std::move(copy), copied);
}

StatusOr<ConstantPtr> FromRawData(const TensorType& type, ::onnx::TensorProto& proto) {
  const auto length = static_cast<int64_t>(proto.raw_data().size());
  if (length != type.bytes()) {
    return InvalidArgument("its raw_data has {} bytes, {} has {}", length, graph::TypeText(type),
                           type.bytes());
  }
  const std::shared_ptr<const std::string> owner(proto.release_raw_data());
  return FromBytes(type, owner, std::as_bytes(std::span(*owner)));
}

Status WrongCount(const TensorType& type, int64_t count) {
  return InvalidArgument("it has {} elements, {} has {}", count, graph::TypeText(type),
                         type.num_elements());
}

// Reads a list whose elements have the constant's layout in memory.
template <typename List>
StatusOr<ConstantPtr> FromList(const TensorType& type, List& list) {
  if (list.size() != type.num_elements()) return WrongCount(type, list.size());
  const auto owner = std::make_shared<List>(std::move(list));
  return Constant::FromMemory(type, owner, std::as_bytes(std::span(owner->data(), owner->size())));
}

// Reads a list whose numbers encode others: the bits of short floats, or integers of another size.
template <typename List>
StatusOr<ConstantPtr> FromNarrowed(const TensorType& type, const List& list) {
  if (list.size() != type.num_elements()) return WrongCount(type, list.size());
  ir::NDArray array(type.type, type.shape);
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    const auto bits = static_cast<int64_t>(list.Get(static_cast<int>(i)));
    if (type.type.is_float()) {
      // The low bytes come first.
      const auto size = static_cast<size_t>(type.type.bytes());
      std::memcpy(array.mutable_bytes().data() + static_cast<size_t>(i) * size, &bits, size);
    } else {
      array.Set(i, ir::Value::Int(bits));
    }
  }
  return Constant::FromArray(std::move(array));
}

StatusOr<ConstantPtr> FromTypedData(const TensorType& type, ::onnx::TensorProto& proto) {
  if (type.type == ir::kFloat32) return FromList(type, *proto.mutable_float_data());
  if (type.type == ir::kFloat64) return FromList(type, *proto.mutable_double_data());
  if (type.type == ir::kInt64) return FromList(type, *proto.mutable_int64_data());
  if (type.type == ir::kInt32) return FromList(type, *proto.mutable_int32_data());
  if (type.type == ir::kUInt64) return FromList(type, *proto.mutable_uint64_data());
  if (type.type == ir::kUInt32) return FromNarrowed(type, proto.uint64_data());
  return FromNarrowed(type, proto.int32_data());
}

StatusOr<int64_t> ParseCount(const std::string& key, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return InvalidArgument("the {} of its external data is '{}', expected a number", key, text);
  return value;
}

}  // namespace

StatusOr<ExternalData::Bytes> TensorData::MapExternal(const TensorType& type, int64_t bytes,
                                                      const ::onnx::TensorProto& proto) {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    KILN_ASSIGN_OR_RETURN(const int64_t count, ParseCount(entry.key(), entry.value()));
    if (entry.key() == "offset") offset = count;
    if (entry.key() == "length") length = count;
  }
  if (length && *length != bytes) {
    return InvalidArgument("its external data has {} bytes, {} has {}", *length,
                           graph::TypeText(type), bytes);
  }
  return external_.Map(location, offset, bytes);
}

StatusOr<Tensor> TensorData::Read(::onnx::TensorProto& proto) {
  KILN_ASSIGN_OR_RETURN(const ir::Type element, ElementType(proto.data_type()));
  KILN_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ReadShape(proto));
  if (proto.has_segment()) return Unimplemented("tensors in segments");
  TensorType type{element, std::move(shape)};
  if (Tensor empty = Tensor::Empty(type); empty.is_empty()) return empty;
  KILN_RETURN_IF_ERROR(graph::CheckTensorType(type));
  const auto read = [&]() -> StatusOr<ConstantPtr> {
    if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
      KILN_ASSIGN_OR_RETURN(ExternalData::Bytes mapped, MapExternal(type, type.bytes(), proto));
      return FromBytes(type, std::move(mapped.owner), mapped.bytes);
    }
    return proto.has_raw_data() ? FromRawData(type, proto) : FromTypedData(type, proto);
  };
  KILN_ASSIGN_OR_RETURN(ConstantPtr constant, read());
  return Tensor::Of(std::move(constant), proto.name());
}

StatusOr<Tensor> TensorData::Take(::onnx::TensorProto& proto) {
  const auto found = taken_.find(&proto);
  if (found != taken_.end()) return found->second;
  StatusOr<Tensor> tensor = Read(proto);
  if (!tensor.ok()) return Annotate(tensor.status(), fmt::format("tensor '{}'", proto.name()));
  return taken_.emplace(&proto, *std::move(tensor)).first->second;
}

}  // namespace kiln::frontend
