#include "runtime/dl_tensor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "runtime/dtype.h"

namespace kiln::runtime {
namespace {

constexpr uint8_t kInt = 0, kUnsigned = 1, kFloat = 2, kBFloat = 4, kBool = 6, kFloat8E4M3 = 10,
                  kFloat8E5M2 = 12;

KilnDLDataType DLDataTypeOf(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * DTypeBytes(dtype));
  switch (dtype) {
    case DType::kFloat64:
    case DType::kFloat32:
    case DType::kFloat16:
      return {kFloat, bits, 1};
    case DType::kBFloat16:
      return {kBFloat, bits, 1};
    case DType::kFloat8E4M3:
      return {kFloat8E4M3, bits, 1};
    case DType::kFloat8E5M2:
      return {kFloat8E5M2, bits, 1};
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return {kUnsigned, bits, 1};
    case DType::kBool:
      return {kBool, bits, 1};
    default:
      return {kInt, bits, 1};
  }
}

std::string TypeText(const KilnDLDataType& type) {
  if (type.code == kFloat8E4M3) return "float8_e4m3fn";
  if (type.code == kFloat8E5M2) return "float8_e5m2";
  constexpr std::string_view kNames[] = {"int",    "uint",    "float", "handle",
                                         "bfloat", "complex", "bool"};
  const std::string_view name = type.code < std::size(kNames) ? kNames[type.code] : "type";
  return fmt::format("{}{}{}", name, type.bits,
                     type.lanes == 1 ? "" : fmt::format("x{}", type.lanes));
}

Status CheckType(const KilnDLDataType& type, const WantedTensor& wanted) {
  const KilnDLDataType& expected = wanted.type;
  if (type.code == expected.code && type.bits == expected.bits && type.lanes == expected.lanes) {
    return OkStatus();
  }
  return InvalidArgument("its dtype is {}, expected {}", TypeText(type), wanted.tensor->dtype);
}

Status CheckShape(const KilnDLTensor& tensor, const NetworkTensor& wanted) {
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
    return InvalidArgument("it has {} dimensions and no shape", tensor.ndim);
  }
  const std::span<const int64_t> shape(tensor.shape, static_cast<size_t>(tensor.ndim));
  if (std::equal(shape.begin(), shape.end(), wanted.shape.begin(), wanted.shape.end())) {
    return OkStatus();
  }
  return InvalidArgument("its shape is [{}], expected [{}]", fmt::join(shape, ", "),
                         fmt::join(wanted.shape, ", "));
}

Status CheckContiguous(const KilnDLTensor& tensor) {
  if (tensor.strides == nullptr) return OkStatus();
  int64_t expected = 1;
  for (int32_t axis = tensor.ndim; axis-- > 0; expected *= tensor.shape[axis]) {
    if (tensor.shape[axis] == 1 || tensor.strides[axis] == expected) continue;
    return InvalidArgument(
        "it is not contiguous: its stride along axis {} is {}, expected {}; copy it first", axis,
        tensor.strides[axis], expected);
  }
  return OkStatus();
}

DlDevice DeviceOf(const KilnDLTensor& tensor) {
  return {tensor.device.device_type, tensor.device.device_id};
}

bool IsOneOf(std::span<const int32_t> types, int32_t type) {
  return std::ranges::find(types, type) != types.end();
}

Status CheckDevice(DlDevice of, const TensorPlace& place) {
  if (of == place.device) return OkStatus();
  for (const NetworkDeviceKind* kind : place.kinds) {
    if (IsOneOf(kind->host_dl_types, of.type)) return OkStatus();
  }
  return InvalidArgument("it is on {}, and the network runs on {}", DeviceText(of, place.kinds),
                         DeviceText(place.device, place.kinds));
}

Status Check(const KilnDLTensor* tensor, const WantedTensor& wanted, const TensorPlace& place) {
  if (tensor == nullptr || (tensor->data == nullptr && !wanted.is_empty))
    return InvalidArgument("it is NULL");
  KILN_RETURN_IF_ERROR(CheckType(tensor->dtype, wanted));
  KILN_RETURN_IF_ERROR(CheckShape(*tensor, *wanted.tensor));
  if (!wanted.is_empty) KILN_RETURN_IF_ERROR(CheckContiguous(*tensor));
  return CheckDevice(DeviceOf(*tensor), place);
}

Status OfTensor(const Status& status, const WantedTensor& wanted) {
  if (status.ok()) return status;
  return Annotate(status, fmt::format("tensor '{}'", wanted.tensor->name));
}

}  // namespace

std::vector<WantedTensor> WantedTensors(std::span<const NetworkTensor> tensors) {
  std::vector<WantedTensor> wanted;
  for (const NetworkTensor& tensor : tensors) {
    const StatusOr<DType> dtype = ParseDType(tensor.dtype);
    KILN_CHECK(dtype.ok(), "of '{}': {}", tensor.name, Message(dtype.status()));
    const bool is_empty =
        std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
    wanted.push_back({&tensor, DLDataTypeOf(*dtype), is_empty});
  }
  return wanted;
}

Status CheckTensor(const KilnDLTensor* tensor, const WantedTensor& wanted,
                   const TensorPlace& place) {
  return OfTensor(Check(tensor, wanted, place), wanted);
}

Status CheckOnDevice(const KilnDLTensor& tensor, const WantedTensor& wanted,
                     const TensorPlace& place) {
  const DlDevice of = DeviceOf(tensor);
  if (of == place.device || wanted.is_empty) return OkStatus();
  const auto kind = std::ranges::find(place.kinds, place.device.type, &NetworkDeviceKind::dl_type);
  if (kind != place.kinds.end() && IsOneOf((*kind)->shared_dl_types, of.type)) return OkStatus();
  return OfTensor(
      InvalidArgument("it is on {}, and a run on a stream copies nothing: expected memory of {}",
                      DeviceText(of, place.kinds), DeviceText(place.device, place.kinds)),
      wanted);
}

}  // namespace kiln::runtime
