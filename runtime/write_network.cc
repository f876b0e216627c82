#include <algorithm>
#include <cstring>

#include "base/file/file.h"
#include "base/numbers/integers.h"
#include "runtime/network_file.h"
#include "runtime/network_header.h"

namespace kiln::runtime {
namespace {

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The end of a file, which is the network's. Offsets are those in the network.
class NetworkPart {
 public:
  explicit NetworkPart(AtomicFile& file) : file_(file), begin_(file.bytes()) {}

  Status Append(std::string_view bytes) { return file_.Append(bytes); }
  Status WriteAt(int64_t offset, std::string_view bytes) {
    return file_.WriteAt(begin_ + offset, bytes);
  }
  int64_t bytes() const { return file_.bytes() - begin_; }

 private:
  AtomicFile& file_;
  const int64_t begin_;
};

Status PadTo(NetworkPart& file, int64_t offset) {
  static constexpr char kZeros[kConstantsAlignment] = {};
  while (file.bytes() < offset) {
    const int64_t bytes = std::min<int64_t>(sizeof(kZeros), offset - file.bytes());
    KILN_RETURN_IF_ERROR(file.Append({kZeros, static_cast<size_t>(bytes)}));
  }
  return OkStatus();
}

StatusOr<Section> Append(NetworkPart& file, std::string_view bytes) {
  KILN_RETURN_IF_ERROR(PadTo(file, RoundUp(file.bytes(), kSectionAlignment)));
  const Section section{file.bytes(), static_cast<int64_t>(bytes.size()), Xxh3Hash128(bytes)};
  KILN_RETURN_IF_ERROR(file.Append(bytes));
  return section;
}

std::vector<int32_t> ConstantsByOffset(const Network& network) {
  std::vector<int32_t> constants;
  for (size_t i = 0; i < network.buffers.size(); ++i) {
    if (network.buffers[i].place == Place::kConstant) constants.push_back(static_cast<int32_t>(i));
  }
  std::sort(constants.begin(), constants.end(), [&](int32_t a, int32_t b) {
    return network.buffers[static_cast<size_t>(a)].offset <
           network.buffers[static_cast<size_t>(b)].offset;
  });
  return constants;
}

// Writes the bytes of a section piece by piece.
class SectionWriter {
 public:
  explicit SectionWriter(NetworkPart& file) : file_(file), start_(file.bytes()) {}

  Status Append(std::string_view bytes) {
    checksum_.Update(bytes);
    return file_.Append(bytes);
  }
  Status PadTo(int64_t offset) {
    const std::string zeros(static_cast<size_t>(offset - bytes()), '\0');
    return Append(zeros);
  }
  int64_t bytes() const { return file_.bytes() - start_; }
  Section section() const { return {start_, bytes(), checksum_.Get()}; }

 private:
  NetworkPart& file_;
  const int64_t start_;
  Xxh3Stream checksum_;
};

StatusOr<Section> AppendConstants(NetworkPart& file, const Network& network,
                                  const ConstantSource& constants) {
  KILN_RETURN_IF_ERROR(PadTo(file, RoundUp(file.bytes(), kConstantsAlignment)));
  SectionWriter writer(file);
  for (int32_t number : ConstantsByOffset(network)) {
    const NetworkBuffer& buffer = network.buffers[static_cast<size_t>(number)];
    KILN_RETURN_IF_ERROR(writer.PadTo(buffer.offset));
    KILN_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, constants(number));
    if (static_cast<int64_t>(bytes.size()) != buffer.bytes) {
      return InvalidArgument("constant {} has {} bytes, its buffer {}", number, bytes.size(),
                             buffer.bytes);
    }
    KILN_RETURN_IF_ERROR(writer.Append(AsText(bytes)));
  }
  KILN_RETURN_IF_ERROR(writer.PadTo(network.constants_bytes));
  return writer.section();
}

Status CheckBinaries(const Network& network) {
  for (std::string_view binary : network.binaries) {
    if (binary.starts_with("\x7f"
                           "ELF"))
      continue;
    return InvalidArgument("a binary of {} bytes is no ELF file", binary.size());
  }
  return OkStatus();
}

Status WriteHeader(NetworkPart& file, const Section& manifest) {
  NetworkHeader header = {.magic = {},
                          .version = kNetworkFileVersion,
                          .header_bytes = sizeof(NetworkHeader),
                          .file_bytes = static_cast<uint64_t>(file.bytes()),
                          .manifest_offset = static_cast<uint64_t>(manifest.offset),
                          .manifest_bytes = static_cast<uint64_t>(manifest.bytes),
                          .manifest_checksum_high = manifest.checksum.high,
                          .manifest_checksum_low = manifest.checksum.low,
                          .reserved = 0};
  std::memcpy(header.magic, kNetworkMagic, sizeof(kNetworkMagic));
  return file.WriteAt(0, {reinterpret_cast<const char*>(&header), sizeof(header)});
}

}  // namespace

Status AppendNetwork(AtomicFile& to, const Network& network, const ConstantSource& constants) {
  KILN_RETURN_IF_ERROR(CheckNetwork(network));
  KILN_RETURN_IF_ERROR(CheckBinaries(network));
  NetworkPart file(to);
  KILN_RETURN_IF_ERROR(PadTo(file, sizeof(NetworkHeader)));
  Manifest manifest;
  manifest.network = network;
  for (std::string_view binary : network.binaries) {
    KILN_ASSIGN_OR_RETURN(const Section section, Append(file, binary));
    manifest.binaries.push_back(section);
  }
  KILN_ASSIGN_OR_RETURN(manifest.graph_text, Append(file, network.graph_text));
  KILN_ASSIGN_OR_RETURN(manifest.options_text, Append(file, network.options_text));
  KILN_ASSIGN_OR_RETURN(manifest.constants, AppendConstants(file, network, constants));
  const std::string text = PrintManifest(manifest);
  if (static_cast<int64_t>(text.size()) > kMaxManifestBytes) {
    return InvalidArgument("the network has {} kernels and {} buffers: that is too many for a file",
                           network.kernels.size(), network.buffers.size());
  }
  KILN_ASSIGN_OR_RETURN(const Section section, Append(file, text));
  return WriteHeader(file, section);
}

StatusOr<int64_t> WriteNetwork(const std::string& path, const Network& network,
                               const ConstantSource& constants) {
  KILN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  KILN_RETURN_IF_ERROR(AppendNetwork(file, network, constants));
  const int64_t bytes = file.bytes();
  KILN_RETURN_IF_ERROR(file.Commit());
  return bytes;
}

}  // namespace kiln::runtime
