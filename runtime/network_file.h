// The file of a compiled network (.kiln).
//
//   64 bytes      magic "KILN-NET", version, size of the file, where the manifest is, its checksum
//   binaries      ELF files, each at a multiple of 64 bytes
//   texts         the graph and the options, for people
//   constants     at a multiple of 4096 bytes, so that they can be used where they are mapped
//   manifest      JSON: all else, and where these are, with an XXH3-128 of each (manifest.h)
//
// Integers of the header are little-endian. The manifest comes last because the checksum of the
// constants is known when they have been written; it can be read with any tool.
//
// A file is code: who runs one trusts who made it. What is checked keeps damaged, cut and strange
// files from doing anything but being refused in one sentence.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "runtime/manifest.h"
#include "runtime/network.h"

namespace kiln::runtime {

inline constexpr uint32_t kNetworkFileVersion = 3;

struct ReadOptions {
  // False leaves reading all constants to a later CheckConstants: opening takes milliseconds then.
  bool check_constants = true;
};

// An open file: memory-mapped, so that pages of constants are read when they are used and shared
// with other processes. Immutable, any thread. The file must not be changed in place while it is
// open (WriteNetwork replaces it); a file that gets shorter kills who reads it (SIGBUS).
class NetworkFile {
 public:
  // Errors begin with the path. Cost: reads everything once, about 5 GB/s from memory.
  static StatusOr<std::shared_ptr<const NetworkFile>> Open(const std::string& path,
                                                           const ReadOptions& options = {});
  // A copy of these bytes.
  static StatusOr<std::shared_ptr<const NetworkFile>> FromBytes(std::span<const std::byte> bytes,
                                                                const ReadOptions& options = {});
  ~NetworkFile();
  NetworkFile(const NetworkFile&) = delete;
  NetworkFile& operator=(const NetworkFile&) = delete;

  // Checked (CheckNetwork). Its binaries are views of the file.
  const Network& network() const { return manifest_.network; }
  const Manifest& manifest() const { return manifest_; }
  // Aligned to 4096 bytes.
  std::span<const std::byte> constants() const { return constants_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_.size()); }

  // DataLoss when their checksum is another one.
  Status CheckConstants() const;

 private:
  NetworkFile() = default;
  Status Read(const ReadOptions& options);
  StatusOr<std::string_view> Checked(const Section& section, std::string_view what) const;

  std::span<const std::byte> bytes_;  // a mapping of its own
  std::span<const std::byte> constants_;
  Manifest manifest_;
};

// The bytes of the constant that is buffer number `buffer`; as many as it has. They are valid until
// the next call. Called once for each constant, in the order of their offsets.
using ConstantSource = std::function<StatusOr<std::span<const std::byte>>(int32_t buffer)>;

// Writes the file, or leaves what was there. Refuses what CheckNetwork refuses, and binaries that
// are no ELF files. Takes no memory for constants. Returns the size of the file.
StatusOr<int64_t> WriteNetwork(const std::string& path, const Network& network,
                               const ConstantSource& constants);

}  // namespace kiln::runtime
