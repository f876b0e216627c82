#include "frontend/onnx/external_data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "base/errno_status.h"
#include "base/file/fd.h"

namespace kiln::frontend {
namespace {

StatusOr<std::shared_ptr<const void>> MapWhole(int fd, size_t length, const std::string& path) {
  if (length == 0) return std::shared_ptr<const void>();
  void* const start = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, fd, 0);
  if (start == MAP_FAILED) return ErrnoStatus(errno, "cannot map {}", path);
  return std::shared_ptr<const void>(
      start, [length](const void* p) { munmap(const_cast<void*>(p), length); });
}

}  // namespace

StatusOr<std::string> ExternalData::Resolve(const std::string& location) const {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path root = fs::canonical(folder_.empty() ? "." : folder_, error);
  if (error) return NotFound("cannot find the model's folder {}: {}", folder_, error.message());
  if (location.empty() || location.find('\0') != std::string::npos ||
      fs::path(location).is_absolute()) {
    return InvalidArgument("external data '{}' is not a path below the model's folder", location);
  }
  const fs::path file = fs::canonical(root / location, error);
  if (error) {
    return NotFound("cannot find external data '{}' in {}: {}", location, root.string(),
                    error.message());
  }
  const fs::path relative = file.lexically_relative(root);
  if (relative.empty() || *relative.begin() == "..") {
    return InvalidArgument("external data '{}' is outside of the model's folder {}", location,
                           root.string());
  }
  return file.string();
}

StatusOr<const ExternalData::Mapping*> ExternalData::MapFile(const std::string& location) {
  const auto found = files_.find(location);
  if (found != files_.end()) return &found->second;
  KILN_ASSIGN_OR_RETURN(const std::string path, Resolve(location));
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) != 0)
    return ErrnoStatus(errno, "cannot read external data {}", path);
  if (!S_ISREG(info.st_mode)) return InvalidArgument("external data {} is not a file", path);
  KILN_ASSIGN_OR_RETURN(std::shared_ptr<const void> owner,
                        MapWhole(fd.get(), static_cast<size_t>(info.st_size), path));
  return &files_.emplace(location, Mapping{std::move(owner), info.st_size}).first->second;
}

StatusOr<ExternalData::Bytes> ExternalData::Map(const std::string& location, int64_t offset,
                                                std::optional<int64_t> length) {
  KILN_ASSIGN_OR_RETURN(const Mapping* file, MapFile(location));
  const bool offset_fits = offset >= 0 && offset <= file->length;
  const int64_t left = offset_fits ? file->length - offset : 0;
  const int64_t count = length.value_or(left);
  if (!offset_fits || count < 0 || count > left) {
    return InvalidArgument("external data '{}' has {} bytes, wanted are {} from byte {} on",
                           location, file->length, count, offset);
  }
  const auto* start = static_cast<const std::byte*>(file->owner.get()) + offset;
  return Bytes{file->owner, {start, static_cast<size_t>(count)}};
}

}  // namespace kiln::frontend
