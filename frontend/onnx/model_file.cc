#include "frontend/onnx/model_file.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/wire_format_lite.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <functional>

#include "base/errno_status.h"
#include "base/file/fd.h"

namespace kiln::frontend {
namespace {

using ::google::protobuf::MessageLite;
using ::google::protobuf::internal::WireFormatLite;
using ::google::protobuf::io::CodedInputStream;

// Reads a field that is not left to protobuf; null for all other fields.
using FieldReader = std::function<bool(CodedInputStream&, int length)>;
using FieldReaders = std::function<FieldReader(int field)>;

// Reads the length of a field whose bytes must all be in the file.
bool ReadLength(CodedInputStream& in, int& length) {
  return in.ReadVarintSizeAsInt(&length) && length <= in.BytesUntilLimit();
}

// Reads a message up to the limit of the stream. Protobuf itself would grow a long string by
// doubling it, with two copies in memory meanwhile. Therefore `readers` read strings that may be
// long, and the messages around them; the rest is collected and parsed as usual.
bool ReadMessage(CodedInputStream& in, MessageLite& message, const FieldReaders& readers) {
  std::string rest;
  {
    ::google::protobuf::io::StringOutputStream stream(&rest);
    ::google::protobuf::io::CodedOutputStream out(&stream);
    while (const uint32_t tag = in.ReadTag()) {
      const bool has_length =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      const FieldReader reader =
          has_length ? readers(WireFormatLite::GetTagFieldNumber(tag)) : nullptr;
      int length = 0;
      const bool ok = reader ? ReadLength(in, length) && reader(in, length)
                             : WireFormatLite::SkipField(&in, tag, &out);
      if (!ok) return false;
    }
  }
  return in.ConsumedEntireMessage() && message.MergeFromString(rest);
}

FieldReader Submessage(std::function<bool(CodedInputStream&)> read) {
  return [read = std::move(read)](CodedInputStream& in, int length) {
    const CodedInputStream::Limit limit = in.PushLimit(length);
    const bool ok = read(in);
    in.PopLimit(limit);
    return ok;
  };
}

bool ReadTensor(CodedInputStream& in, ::onnx::TensorProto& tensor) {
  return ReadMessage(in, tensor, [&](int field) -> FieldReader {
    if (field != ::onnx::TensorProto::kRawDataFieldNumber) return nullptr;
    return [&](CodedInputStream& stream, int length) {
      return stream.ReadString(tensor.mutable_raw_data(), length);
    };
  });
}

bool ReadAttribute(CodedInputStream& in, ::onnx::AttributeProto& attribute) {
  return ReadMessage(in, attribute, [&](int field) -> FieldReader {
    if (field != ::onnx::AttributeProto::kTFieldNumber) return nullptr;
    return Submessage([&](CodedInputStream& t) { return ReadTensor(t, *attribute.mutable_t()); });
  });
}

bool ReadNode(CodedInputStream& in, ::onnx::NodeProto& node) {
  return ReadMessage(in, node, [&](int field) -> FieldReader {
    if (field != ::onnx::NodeProto::kAttributeFieldNumber) return nullptr;
    return Submessage([&](CodedInputStream& a) { return ReadAttribute(a, *node.add_attribute()); });
  });
}

bool ReadGraph(CodedInputStream& in, ::onnx::GraphProto& graph) {
  return ReadMessage(in, graph, [&](int field) -> FieldReader {
    if (field == ::onnx::GraphProto::kNodeFieldNumber)
      return Submessage([&](CodedInputStream& n) { return ReadNode(n, *graph.add_node()); });
    if (field == ::onnx::GraphProto::kInitializerFieldNumber)
      return Submessage(
          [&](CodedInputStream& t) { return ReadTensor(t, *graph.add_initializer()); });
    return nullptr;
  });
}

bool ReadModel(CodedInputStream& in, ::onnx::ModelProto& model) {
  return ReadMessage(in, model, [&](int field) -> FieldReader {
    if (field != ::onnx::ModelProto::kGraphFieldNumber) return nullptr;
    return Submessage([&](CodedInputStream& g) { return ReadGraph(g, *model.mutable_graph()); });
  });
}

StatusOr<::onnx::ModelProto> ParseModel(::google::protobuf::io::ZeroCopyInputStream& stream,
                                        int length) {
  CodedInputStream in(&stream);
  in.PushLimit(length);
  ::onnx::ModelProto model;
  if (!ReadModel(in, model)) {
    return InvalidArgument(
        "this is no ONNX model, or a damaged one: it breaks off or is malformed "
        "at byte {} of {}",
        in.CurrentPosition(), length);
  }
  if (!model.has_graph() || model.opset_import().empty()) {
    return InvalidArgument("this is no ONNX model: it has no {}",
                           model.has_graph() ? "operator set (opset_import)" : "graph");
  }
  return model;
}

struct OpenFile {
  UniqueFd fd;
  int length = 0;
};

StatusOr<OpenFile> Open(const std::string& path) {
  // For a pipe, O_NONBLOCK opens at once instead of waiting for a writer.
  OpenFile file{UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK))};
  struct stat info{};
  if (!file.fd.valid() || fstat(file.fd.get(), &info) != 0)
    return ErrnoStatus(errno, "cannot read {}", path);
  if (!S_ISREG(info.st_mode)) return InvalidArgument("{} is not a file", path);
  if (info.st_size >= INT_MAX) {
    return InvalidArgument(
        "{} has {} bytes: ONNX files have less than 2 GB; the weights of larger "
        "networks are exported as external data, beside the file",
        path, info.st_size);
  }
  file.length = static_cast<int>(info.st_size);
  return file;
}

// Blocks are long enough that calls cost little, and short compared with any model.
constexpr int kBlockBytes = 1 << 18;

}  // namespace

StatusOr<::onnx::ModelProto> ParseModel(std::string_view bytes) {
  if (bytes.size() >= INT_MAX) return InvalidArgument("ONNX models have less than 2 GB");
  const auto length = static_cast<int>(bytes.size());
  ::google::protobuf::io::ArrayInputStream stream(bytes.data(), length);
  return ParseModel(stream, length);
}

StatusOr<::onnx::ModelProto> ReadModelFile(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const OpenFile file, Open(path));
  ::google::protobuf::io::FileInputStream stream(file.fd.get(), kBlockBytes);
  StatusOr<::onnx::ModelProto> model = ParseModel(stream, file.length);
  if (!model.ok()) return Annotate(model.status(), path);
  return model;
}

StatusOr<::onnx::TensorProto> ReadTensorFile(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const OpenFile file, Open(path));
  ::google::protobuf::io::FileInputStream stream(file.fd.get(), kBlockBytes);
  CodedInputStream in(&stream);
  in.PushLimit(file.length);
  ::onnx::TensorProto tensor;
  if (!ReadTensor(in, tensor)) return InvalidArgument("{} is no tensor of ONNX", path);
  return tensor;
}

}  // namespace kiln::frontend
