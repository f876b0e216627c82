#include "base/file/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "base/errno_status.h"
#include "base/file/fd.h"
#include "base/hash/unique_id.h"

namespace kiln {
namespace {

Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "cannot write {}", path);
    content.remove_prefix(n);
  }
  return OkStatus();
}

Status CreateWith(const std::string& path, int flags, int mode, std::string_view content) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, mode));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot create {}", path);
  KILN_RETURN_IF_ERROR(WriteAll(fd.get(), content, path));
  if (close(fd.Release()) != 0) return ErrnoStatus(errno, "cannot write {}", path);
  return OkStatus();
}

// Makes the rename itself survive a crash.
void SyncFolderOf(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  UniqueFd fd(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems refuse this; there is nothing else to try.
  if (fd.valid()) fsync(fd.get());
}

}  // namespace

StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot open {}", path);
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "cannot read {}", path);
  // The size is only a hint: files of /proc and pipes have size 0 here.
  constexpr size_t kStepBytes = 1 << 16;
  const size_t hint = S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) + 1 : 0;
  std::string content;
  size_t filled = 0;
  while (true) {
    if (filled > max_bytes) {
      return ResourceExhausted("{} is longer than {} bytes", path, max_bytes);
    }
    if (filled == content.size()) {
      content.resize(filled == 0 ? std::max(kStepBytes, std::min(hint, max_bytes)) : 2 * filled);
    }
    const ssize_t n = read(fd.get(), content.data() + filled, content.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "cannot read {}", path);
    if (n == 0) break;
    filled += n;
  }
  content.resize(filled);
  return content;
}

Status WriteFile(const std::string& path, std::string_view content) {
  return CreateWith(path, O_TRUNC, 0666, content);
}

AtomicFile::AtomicFile(std::string path, std::string temporary, UniqueFd fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)),
      bytes_(other.bytes_) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

StatusOr<AtomicFile> AtomicFile::Create(const std::string& path, int mode) {
  std::string temporary = fmt::format("{}.{}.tmp", path, UniqueId(8));
  UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_EXCL, mode));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot create {}", temporary);
  return AtomicFile(path, std::move(temporary), std::move(fd));
}

Status AtomicFile::Append(std::string_view bytes) {
  KILN_RETURN_IF_ERROR(WriteAll(fd_.get(), bytes, temporary_));
  bytes_ += static_cast<int64_t>(bytes.size());
  return OkStatus();
}

Status AtomicFile::WriteAt(int64_t offset, std::string_view bytes) {
  KILN_CHECK(offset >= 0 && offset + static_cast<int64_t>(bytes.size()) <= bytes_);
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd_.get(), bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "cannot write {}", temporary_);
    bytes.remove_prefix(n);
    offset += n;
  }
  return OkStatus();
}

Status AtomicFile::Commit() {
  if (fsync(fd_.get()) != 0) return ErrnoStatus(errno, "cannot sync {}", temporary_);
  if (close(fd_.Release()) != 0) return ErrnoStatus(errno, "cannot write {}", temporary_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, "cannot replace {}", path_);
  }
  temporary_.clear();
  SyncFolderOf(path_);
  return OkStatus();
}

Status WriteFileAtomically(const std::string& path, std::string_view content, int mode) {
  KILN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, mode));
  KILN_RETURN_IF_ERROR(file.Append(content));
  return file.Commit();
}

Status MakeDirs(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), "cannot create folder {}", path);
  if (!std::filesystem::is_directory(path, error)) {
    return AlreadyExists("cannot create folder {}: a file is in its place", path);
  }
  return OkStatus();
}

bool FileExists(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0;
}

StatusOr<int64_t> FileSize(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "cannot look at {}", path);
  return static_cast<int64_t>(info.st_size);
}

Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return OkStatus();
  return ErrnoStatus(errno, "cannot remove {}", path);
}

Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return ErrnoStatus(error.value(), "cannot remove {}", path);
  return OkStatus();
}

std::string JoinPath(std::string_view folder, std::string_view name) {
  if (folder.empty() || name.starts_with('/')) return std::string(name);
  return fmt::format("{}{}{}", folder, folder.ends_with('/') ? "" : "/", name);
}

namespace {

std::string TempRoot() {
  const char* root = std::getenv("TMPDIR");
  return root == nullptr || *root == '\0' ? "/tmp" : root;
}

// Returns an invalid descriptor if another process holds the folder.
UniqueFd LockFolder(const std::string& path) {
  UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.valid() && flock(folder.get(), LOCK_EX | LOCK_NB) != 0) folder.Reset();
  return folder;
}

// The user to whom root gives folders that its unprivileged children write.
constexpr uid_t kNobody = 65534;

bool IsLeft(const std::string& path, int age_s) {
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  const uid_t user = geteuid();
  const bool is_ours = info.st_uid == user || (user == 0 && info.st_uid == kNobody);
  return is_ours && std::time(nullptr) - info.st_mtime >= age_s;
}

}  // namespace

StatusOr<TempDir> TempDir::Make(std::string_view name_prefix) {
  RemoveLeftTempDirs(name_prefix);
  std::string path = JoinPath(TempRoot(), fmt::format("{}.XXXXXX", name_prefix));
  if (mkdtemp(path.data()) == nullptr) {
    return ErrnoStatus(errno, "cannot create a temporary folder {}", path);
  }
  UniqueFd lock = LockFolder(path);
  return TempDir(std::move(path), std::move(lock));
}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

void RemoveLeftTempDirs(std::string_view name_prefix, int age_s) {
  constexpr size_t kRandomCharacters = 6;
  const std::string prefix = fmt::format("{}.", name_prefix);
  std::error_code error;
  std::filesystem::directory_iterator entries(TempRoot(), error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (!name.starts_with(prefix) || name.size() != prefix.size() + kRandomCharacters) continue;
    const std::string path = entries->path().string();
    if (!IsLeft(path, age_s)) continue;
    if (const UniqueFd lock = LockFolder(path); lock.valid()) RemoveTree(path).IgnoreError();
  }
}

TempDir::~TempDir() {
  if (!path_.empty()) RemoveTree(path_).IgnoreError();
}

}  // namespace kiln
