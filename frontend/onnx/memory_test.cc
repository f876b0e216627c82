// Measures the memory for reading a large model: its weights are in memory once.
#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/wire_format_lite.h>

#include <fstream>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/model_testing.h"

namespace kiln::frontend {
namespace {

// Returns the peak memory of this process in bytes.
int64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  return 0;
}

void AppendLength(std::string& bytes, int field, uint64_t length) {
  uint8_t buffer[20];
  uint8_t* end = ::google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(
      static_cast<uint32_t>(field << 3 | 2), buffer);
  end = ::google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(length, end);
  bytes.append(reinterpret_cast<char*>(buffer), static_cast<size_t>(end - buffer));
}

// Writes the model with one more initializer w, of `count` floats that are 0, without holding it in
// memory. The graph's field occurs twice, which means the same as once.
void WriteWithWeights(const TestModel& model, int64_t count, const std::string& path) {
  ::onnx::TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  tensor.add_dims(count);
  const auto bytes = static_cast<uint64_t>(4 * count);
  std::string inner = tensor.SerializeAsString();
  AppendLength(inner, ::onnx::TensorProto::kRawDataFieldNumber, bytes);
  std::string middle;
  AppendLength(middle, ::onnx::GraphProto::kInitializerFieldNumber, inner.size() + bytes);
  std::string outer = model.Bytes();
  AppendLength(outer, ::onnx::ModelProto::kGraphFieldNumber, middle.size() + inner.size() + bytes);
  std::ofstream file(path, std::ios::binary);
  file << outer << middle << inner;
  const std::string zeros(1 << 16, '\0');
  for (uint64_t written = 0; written < bytes; written += zeros.size())
    file.write(zeros.data(),
               static_cast<std::streamsize>(std::min<uint64_t>(zeros.size(), bytes - written)));
}

TEST(MemoryTest, WeightsAreInMemoryOnce) {
  // A single tensor of 240 MB.
  constexpr int64_t kCount = 60'000'000;
  TestModel model;
  model.Input("x", "float32", {1});
  model.Node("Add", {"x", "w"}, {"y"});
  model.Output("y");
  ASSERT_OK_AND_ASSIGN(const TempDir dir, TempDir::Make("kiln_onnx"));
  WriteWithWeights(model, kCount, dir.Join("m.onnx"));
  const int64_t before = PeakBytes();
  ASSERT_OK_AND_ASSIGN(const graph::Graph graph, ImportOnnx(dir.Join("m.onnx")));
  EXPECT_EQ(graph.constant_bytes(), 4 * kCount);
  EXPECT_LT(PeakBytes() - before, 1.1 * 4 * kCount);
}

}  // namespace
}  // namespace kiln::frontend
