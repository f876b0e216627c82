#include "runtime/network_testing.h"

#include <cstring>

#include "base/file/file.h"
#include "runtime/network_header.h"

namespace kiln::runtime {

std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Network SmallNetwork() {
  static constexpr std::string_view kBinary =
      "\x7f"
      "ELF, and nothing of one behind that";
  Network network;
  network.target = {
      .kind = "cpu", .arch = "x86_64", .device = "any", .features = {}, .text = "llvm"};
  network.inputs = {{.name = "x", .dtype = "float32", .shape = {4}, .buffer = 0}};
  network.outputs = {{.name = "y", .dtype = "float32", .shape = {2, 2}, .buffer = 4}};
  network.constants = {{.name = "w", .dtype = "float32", .shape = {4}, .buffer = 1}};
  network.buffers = {
      {.place = Place::kInput, .bytes = 16},
      {.place = Place::kConstant, .bytes = 16},
      {.place = Place::kConstant, .bytes = 5, .alignment_bytes = 1},
      {.place = Place::kArena, .bytes = 32},
      {.place = Place::kOutput, .bytes = 16},
      {.place = Place::kView, .bytes = 16, .alignment_bytes = 16, .offset = 16, .viewed = 3}};
  network.binaries = {kBinary};
  NetworkKernel first{.name = "add",
                      .args = {{0, false}, {1, false}, {3, true}},
                      .launches = {{.symbol = "kiln_entry", .args = {0, 1, 2}}},
                      .workload_key = "[\"add\", 4]",
                      .computation = "input x: float32[4]",
                      .record = "17",
                      .source = KernelSource::kTuned,
                      .expected_s = 1e-6,
                      .flops = 4,
                      .bytes = 48};
  NetworkKernel second = first;
  second.name = "mul";
  second.args = {{5, false}, {2, false}, {4, true}};
  network.kernels = {first, second};
  network.graph_text = "input x: float32[4]\n";
  network.options_text = "--target llvm";
  return network;
}

StatusOr<std::string> FileOf(const Network& network) {
  KILN_ASSIGN_OR_RETURN(const TempDir folder, TempDir::Make("kiln_network"));
  const std::string path = folder.Join("net.kiln");
  std::vector<std::byte> constant;
  const auto source = [&](int32_t buffer) -> StatusOr<std::span<const std::byte>> {
    constant.resize(static_cast<size_t>(network.buffers[static_cast<size_t>(buffer)].bytes));
    for (size_t i = 0; i < constant.size(); ++i) constant[i] = static_cast<std::byte>(i);
    return constant;
  };
  KILN_RETURN_IF_ERROR(WriteNetwork(path, network, source).status());
  return ReadFile(path);
}

std::string SealedFile(std::string_view manifest, std::string_view body) {
  const Hash128 checksum = Xxh3Hash128(manifest);
  NetworkHeader header = {.magic = {},
                          .version = kNetworkFileVersion,
                          .header_bytes = sizeof(NetworkHeader),
                          .file_bytes = sizeof(NetworkHeader) + body.size() + manifest.size(),
                          .manifest_offset = sizeof(NetworkHeader) + body.size(),
                          .manifest_bytes = manifest.size(),
                          .manifest_checksum_high = checksum.high,
                          .manifest_checksum_low = checksum.low,
                          .reserved = 0};
  std::memcpy(header.magic, kNetworkMagic, sizeof(kNetworkMagic));
  std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
  return file.append(body).append(manifest);
}

std::string ManifestOverZeros(const Network& network) {
  const auto zeros = [](int64_t offset, int64_t bytes) -> Section {
    return {offset, bytes, Xxh3Hash128(std::string(static_cast<size_t>(bytes), '\0'))};
  };
  Manifest manifest{.network = network,
                    .binaries = {},
                    .constants = zeros(kConstantsAlignment, network.constants_bytes),
                    .graph_text = zeros(2048, 7),
                    .options_text = zeros(3072, 0)};
  for (size_t i = 0; i < network.binaries.size(); ++i) {
    manifest.binaries.push_back(zeros(128 * static_cast<int64_t>(i + 1), 100));
  }
  return PrintManifest(manifest);
}

}  // namespace kiln::runtime
