// Maps the files beside a model that hold its larger weights into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"

namespace kiln::frontend {

class ExternalData {
 public:
  // Files are looked for in `folder` and below.
  explicit ExternalData(std::string folder) : folder_(std::move(folder)) {}

  struct Bytes {
    // Keeps the mapping.
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };
  // Maps a part of a file; without a length everything from the offset on. Refuses a path that
  // leaves the folder, even by a link, a path that is no file, and a part that is not within the
  // file.
  StatusOr<Bytes> Map(const std::string& location, int64_t offset, std::optional<int64_t> length);

 private:
  struct Mapping {
    std::shared_ptr<const void> owner;
    int64_t length = 0;
  };
  StatusOr<std::string> Resolve(const std::string& location) const;
  StatusOr<const Mapping*> MapFile(const std::string& location);

  std::string folder_;
  // Mappings by location.
  std::map<std::string, Mapping> files_;
};

}  // namespace kiln::frontend
