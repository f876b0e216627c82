#include "base/file/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/errno_status.h"
#include "base/file/fd.h"
#include "base/file/file.h"
#include "base/text/shell_word.h"

namespace kiln {
namespace {

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

std::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Status CheckKept(const std::string& path, const struct stat& info, const PrivateContent& content) {
  if (!S_ISREG(info.st_mode)) {
    return FailedPrecondition("the {} must be in a file, and {} is {}; {}", content.noun, path,
                              KindOf(info.st_mode), content.remedy);
  }
  const mode_t others = info.st_mode & kOthers;
  if (others == 0) return OkStatus();
  return FailedPrecondition(
      "the file of the {}, {}, has mode {:04o}, which gives its group or others {:03o}; "
      "expected none of these bits: `chmod 600 {}`",
      content.noun, path, info.st_mode & 07777, others, ShellWord(path));
}

}  // namespace

StatusOr<std::string> ReadPrivateFile(const std::string& path, const PrivateContent& content,
                                      size_t max_bytes) {
  const auto failed = [&] {
    return ErrnoStatus(errno, "cannot read the {} in {}", content.noun, path);
  };
  // The flags keep open from waiting for the other end of a pipe.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return failed();
  KILN_RETURN_IF_ERROR(CheckKept(path, info, content));
  std::string text(max_bytes, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = read(fd.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed();
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  text.resize(filled);
  return text;
}

Status MakePrivateDir(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (!parent.empty()) KILN_RETURN_IF_ERROR(MakeDirs(parent));
  if (mkdir(path.c_str(), 0700) == 0) return OkStatus();
  const int error = errno;
  // MakeDirs says what stands there if that is no folder.
  if (error == EEXIST) return MakeDirs(path);
  return ErrnoStatus(error, "cannot create folder {}", path);
}

Status CheckPrivateDir(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "cannot look at {}", path);
  const mode_t others = info.st_mode & kOthers;
  if (others == 0) return OkStatus();
  return FailedPrecondition(
      "the folder {} has mode {:04o}, which gives its group or others {:03o}; expected none of "
      "these bits: `chmod 700 {}`",
      path, info.st_mode & 07777, others, ShellWord(path));
}

}  // namespace kiln
