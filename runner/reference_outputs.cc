#include "runner/reference_outputs.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/errno_status.h"

namespace kiln::runner {

StatusOr<MappedOutputs> MappedOutputs::Map(const UniqueFd& file, int64_t half_bytes) {
  const int64_t expected_bytes = 2 * half_bytes;
  if (!file.valid()) return Internal("the reference outputs did not come with the request");
  struct stat info{};
  if (fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "cannot read the reference outputs");
  const off_t bytes = info.st_size;
  if (bytes != expected_bytes) {
    return Internal("the reference outputs have {} bytes, expected {}", bytes, expected_bytes);
  }
  void* mapping = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapping == MAP_FAILED) return ErrnoStatus(errno, "cannot map the reference outputs");
  return MappedOutputs({static_cast<const std::byte*>(mapping), static_cast<size_t>(bytes)});
}

MappedOutputs::MappedOutputs(MappedOutputs&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

MappedOutputs::~MappedOutputs() {
  if (bytes_.data() != nullptr) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::span<const std::byte> MappedOutputs::half(Content content) const {
  const size_t bytes = bytes_.size() / 2;
  return bytes_.subspan(content == Content::kTimed ? 0 : bytes, bytes);
}

Status ClearOutputs(const UniqueFd& file) {
  if (ftruncate(file.get(), 0) != 0 || lseek(file.get(), 0, SEEK_SET) != 0) {
    return ErrnoStatus(errno, "cannot keep the reference outputs");
  }
  return OkStatus();
}

Status AppendOutput(const UniqueFd& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "cannot keep the reference outputs");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return OkStatus();
}

}  // namespace kiln::runner
