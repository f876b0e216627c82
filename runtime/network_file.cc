#include "runtime/network_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/errno_status.h"
#include "base/file/fd.h"
#include "runtime/network_header.h"

namespace kiln::runtime {
namespace {

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads the header. Checks that the file has the size that the header says, and that the manifest
// is inside of the file.
StatusOr<NetworkHeader> ReadHeader(std::span<const std::byte> file) {
  NetworkHeader header;
  if (file.size() < sizeof(header) ||
      std::memcmp(file.data(), kNetworkMagic, sizeof(kNetworkMagic)) != 0) {
    return InvalidArgument("this is no compiled network: it does not begin with 'KILN-NET'");
  }
  std::memcpy(&header, file.data(), sizeof(header));
  if (header.version != kNetworkFileVersion) {
    return FailedPrecondition(
        "the file is of version {}, and this Kiln reads version {}: compile the network again",
        header.version, kNetworkFileVersion);
  }
  if (header.file_bytes != file.size()) {
    return DataLoss("the file was written with {} bytes and has {}", header.file_bytes,
                    file.size());
  }
  if (header.header_bytes != sizeof(header) || header.reserved != 0) {
    return DataLoss("the header is damaged");
  }
  if (header.manifest_offset > file.size() ||
      header.manifest_bytes > file.size() - header.manifest_offset) {
    return DataLoss("the manifest is said to be {} bytes at {}, outside of the file",
                    header.manifest_bytes, header.manifest_offset);
  }
  return header;
}

struct NamedSection {
  std::string_view what;
  const Section* section;
  int64_t alignment;
};

// Checks that each part is inside of the file, aligned, and does not overlap another part.
Status CheckSections(std::vector<NamedSection> sections, int64_t file_bytes) {
  for (const auto& [what, section, alignment] : sections) {
    if (section->offset > file_bytes || section->bytes > file_bytes - section->offset) {
      return InvalidArgument("{} are {} bytes at {}, outside of the file's {}", what,
                             section->bytes, section->offset, file_bytes);
    }
    if (section->offset % alignment != 0) {
      return InvalidArgument("{} are at {}, which is no multiple of {}", what, section->offset,
                             alignment);
    }
  }
  std::erase_if(sections, [](const NamedSection& named) { return named.section->bytes == 0; });
  std::sort(sections.begin(), sections.end(),
            [](const auto& a, const auto& b) { return a.section->offset < b.section->offset; });
  for (size_t i = 1; i < sections.size(); ++i) {
    const Section& before = *sections[i - 1].section;
    if (before.offset + before.bytes <= sections[i].section->offset) continue;
    return InvalidArgument("{} and {} overlap in the file, at {}", sections[i - 1].what,
                           sections[i].what, sections[i].section->offset);
  }
  return OkStatus();
}

Status CheckAllSections(const Manifest& manifest, const Section& whole_manifest,
                        int64_t file_bytes) {
  const Section header{.offset = 0, .bytes = sizeof(NetworkHeader), .checksum = {}};
  std::vector<NamedSection> sections = {{"the header", &header, 1},
                                        {"the manifest", &whole_manifest, 1},
                                        {"the constants", &manifest.constants, kConstantsAlignment},
                                        {"the graph", &manifest.graph_text, 1},
                                        {"the options", &manifest.options_text, 1}};
  for (const Section& binary : manifest.binaries) {
    sections.push_back({"the bytes of a binary", &binary, kSectionAlignment});
  }
  return CheckSections(std::move(sections), file_bytes);
}

StatusOr<std::span<const std::byte>> Map(int fd, size_t bytes) {
  void* mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (mapping == MAP_FAILED) return ErrnoStatus(errno, "cannot map {} bytes", bytes);
  return std::span(static_cast<const std::byte*>(mapping), bytes);
}

StatusOr<std::span<const std::byte>> MapFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot open it");
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "cannot look at it");
  if (!S_ISREG(info.st_mode)) return InvalidArgument("this is no file, and cannot be mapped");
  if (info.st_size == 0) return InvalidArgument("the file is empty");
  return Map(fd.get(), static_cast<size_t>(info.st_size));
}

StatusOr<std::span<const std::byte>> MapCopy(std::span<const std::byte> bytes) {
  if (bytes.empty()) return InvalidArgument("the file is empty");
  void* mapping =
      mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return ErrnoStatus(errno, "cannot get {} bytes", bytes.size());
  std::memcpy(mapping, bytes.data(), bytes.size());
  return std::span(static_cast<const std::byte*>(mapping), bytes.size());
}

}  // namespace

StatusOr<std::shared_ptr<const NetworkFile>> NetworkFile::Open(const std::string& path,
                                                               const ReadOptions& options) {
  std::shared_ptr<NetworkFile> file(new NetworkFile);
  const auto bytes = MapFile(path);
  if (!bytes.ok()) return Annotate(bytes.status(), path);
  file->bytes_ = *bytes;
  file->is_mapped_ = true;
  KILN_RETURN_IF_ERROR(Annotate(file->Read(options), path));
  return file;
}

StatusOr<std::shared_ptr<const NetworkFile>> NetworkFile::FromBytes(
    std::span<const std::byte> bytes, const ReadOptions& options) {
  std::shared_ptr<NetworkFile> file(new NetworkFile);
  KILN_ASSIGN_OR_RETURN(file->bytes_, MapCopy(bytes));
  file->is_mapped_ = true;
  KILN_RETURN_IF_ERROR(file->Read(options));
  return file;
}

StatusOr<std::shared_ptr<const NetworkFile>> NetworkFile::InMemory(std::span<const std::byte> bytes,
                                                                   const ReadOptions& options) {
  std::shared_ptr<NetworkFile> file(new NetworkFile);
  file->bytes_ = bytes;
  KILN_RETURN_IF_ERROR(file->Read(options));
  return file;
}

NetworkFile::~NetworkFile() {
  if (is_mapped_) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

StatusOr<std::string_view> NetworkFile::Checked(const Section& section,
                                                std::string_view what) const {
  const std::string_view bytes = AsText(bytes_).substr(static_cast<size_t>(section.offset),
                                                       static_cast<size_t>(section.bytes));
  if (Xxh3Hash128(bytes) == section.checksum) return bytes;
  return DataLoss("{} are damaged: their checksum is another one than when they were written",
                  what);
}

Status NetworkFile::Read(const ReadOptions& options) {
  KILN_ASSIGN_OR_RETURN(const NetworkHeader header, ReadHeader(bytes_));
  const Section manifest{static_cast<int64_t>(header.manifest_offset),
                         static_cast<int64_t>(header.manifest_bytes),
                         {header.manifest_checksum_high, header.manifest_checksum_low}};
  KILN_ASSIGN_OR_RETURN(const std::string_view text,
                        Checked(manifest, "the bytes of the manifest"));
  KILN_ASSIGN_OR_RETURN(manifest_, ParseManifest(text));
  KILN_RETURN_IF_ERROR(CheckAllSections(manifest_, manifest, bytes()));
  Network& network = manifest_.network;
  for (size_t i = 0; i < manifest_.binaries.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(network.binaries[i],
                          Checked(manifest_.binaries[i], "the bytes of a binary"));
  }
  KILN_ASSIGN_OR_RETURN(network.graph_text,
                        Checked(manifest_.graph_text, "the bytes of the graph"));
  KILN_ASSIGN_OR_RETURN(network.options_text,
                        Checked(manifest_.options_text, "the bytes of the options"));
  if (manifest_.constants.bytes != network.constants_bytes) {
    return InvalidArgument("the file has {} bytes of constants, the network {}",
                           manifest_.constants.bytes, network.constants_bytes);
  }
  constants_ = bytes_.subspan(static_cast<size_t>(manifest_.constants.offset),
                              static_cast<size_t>(manifest_.constants.bytes));
  KILN_RETURN_IF_ERROR(CheckNetwork(network));
  return options.check_constants ? CheckConstants() : OkStatus();
}

Status NetworkFile::CheckConstants() const {
  return Checked(manifest_.constants, "the constants").status();
}

}  // namespace kiln::runtime
