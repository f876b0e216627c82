// The file of a compiled network (.kiln).
//
//   64 bytes      magic "KILN-NET", version, size of the file, place and checksum of the manifest
//   binaries      ELF files, each at a multiple of 64 bytes
//   texts         the graph and the options, for people
//   constants     at a multiple of 4096 bytes, so that they can be used as they are mapped
//   manifest      JSON: all else, and the places of the other parts, with an XXH3-128 of each
//                 (manifest.h)
//
// Integers of the header are little-endian. The manifest comes last because the checksum of the
// constants is known only when they have been written. Any tool can read the manifest.
//
// A file is code, so a user who runs it trusts its author. The checks only make sure that damaged,
// truncated and foreign files are refused in one sentence, and have no other effect.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "runtime/manifest.h"
#include "runtime/network.h"

namespace kiln {
class AtomicFile;
}

namespace kiln::runtime {

inline constexpr uint32_t kNetworkFileVersion = 3;

struct ReadOptions {
  // False leaves reading all constants to a later CheckConstants. Opening then takes milliseconds.
  bool check_constants = true;
};

// An open file. It is memory-mapped, so that pages of constants are read when they are used, and
// are shared with other processes. Immutable, any thread. The file must not be changed in place
// while it is open (WriteNetwork replaces it): a file that gets shorter kills the process that
// reads it (SIGBUS).
class NetworkFile {
 public:
  // Errors begin with the path. Cost: reads everything once, about 5 GB/s from memory.
  static StatusOr<std::shared_ptr<const NetworkFile>> Open(const std::string& path,
                                                           const ReadOptions& options = {});
  // Opens a copy of these bytes.
  static StatusOr<std::shared_ptr<const NetworkFile>> FromBytes(std::span<const std::byte> bytes,
                                                                const ReadOptions& options = {});
  // Uses these bytes where they are. They outlive the object.
  static StatusOr<std::shared_ptr<const NetworkFile>> InMemory(std::span<const std::byte> bytes,
                                                               const ReadOptions& options = {});
  ~NetworkFile();
  NetworkFile(const NetworkFile&) = delete;
  NetworkFile& operator=(const NetworkFile&) = delete;

  // The network was checked (CheckNetwork). Its binaries are views of the file.
  const Network& network() const { return manifest_.network; }
  const Manifest& manifest() const { return manifest_; }
  // Aligned to 4096 bytes.
  std::span<const std::byte> constants() const { return constants_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_.size()); }

  // DataLoss if the constants' checksum is wrong.
  Status CheckConstants() const;

 private:
  NetworkFile() = default;
  Status Read(const ReadOptions& options);
  StatusOr<std::string_view> Checked(const Section& section, std::string_view what) const;

  std::span<const std::byte> bytes_;
  // The bytes are a mapping of its own.
  bool is_mapped_ = false;
  std::span<const std::byte> constants_;
  Manifest manifest_;
};

// Returns the bytes of the constant in buffer number `buffer`, as many as the buffer has. They are
// valid until the next call. Called once for each constant, in the order of their offsets.
using ConstantSource = std::function<StatusOr<std::span<const std::byte>>(int32_t buffer)>;

// Writes the file, or leaves the old file as it was. Refuses networks that CheckNetwork refuses,
// and binaries that are no ELF files. Takes no memory for constants. Returns the size of the file.
StatusOr<int64_t> WriteNetwork(const std::string& path, const Network& network,
                               const ConstantSource& constants);

// Appends the same bytes to a file that has other bytes before them. Their place in memory has to
// be aligned to 4096 bytes if the network is used there (NetworkFile::InMemory).
Status AppendNetwork(AtomicFile& file, const Network& network, const ConstantSource& constants);

}  // namespace kiln::runtime
