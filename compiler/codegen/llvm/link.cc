#include "compiler/codegen/llvm/link.h"

#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <thread>
#include <utility>
#include <vector>

LLD_HAS_DRIVER(elf)

namespace kiln::codegen {
namespace {
// A file in memory that has a path.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("kiln", MFD_CLOEXEC)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }

  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

  Status Write(std::string_view bytes) {
    if (fd_ < 0) return Internal("memfd_create failed: {}", std::strerror(errno));
    while (!bytes.empty()) {
      const ssize_t n = write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Internal("write of an object file failed: {}", std::strerror(errno));
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return OkStatus();
  }

 private:
  int fd_;
};

// Collects all bytes that are written to a path, in a thread of its own. The path is a pipe,
// because the linker writes a regular file through a temporary file beside it, which /proc does not
// allow. A file on disk would depend on a folder in which the process may write.
class PipeReader {
 public:
  PipeReader() {
    if (pipe2(fds_, O_CLOEXEC) != 0) return;
    thread_ = std::thread([this] { ReadAll(); });
  }
  PipeReader(const PipeReader&) = delete;
  PipeReader& operator=(const PipeReader&) = delete;
  ~PipeReader() { Finish(); }

  bool ok() const { return fds_[0] >= 0; }
  std::string path() const { return fmt::format("/proc/self/fd/{}", fds_[1]); }
  // Returns the bytes after all writers are done.
  std::string Finish() {
    if (thread_.joinable()) {
      close(fds_[1]);
      thread_.join();
      close(fds_[0]);
    }
    return std::move(bytes_);
  }

 private:
  void ReadAll() {
    char chunk[1 << 16];
    for (;;) {
      const ssize_t n = read(fds_[0], chunk, sizeof chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      bytes_.append(chunk, static_cast<size_t>(n));
    }
  }

  int fds_[2] = {-1, -1};
  std::string bytes_;
  std::thread thread_;
};

StatusOr<std::string> Link(std::string_view object, std::initializer_list<std::string> more) {
  MemoryFile input;
  KILN_RETURN_IF_ERROR(input.Write(object));
  PipeReader output;
  if (!output.ok()) return Internal("pipe2 failed: {}", std::strerror(errno));
  const std::string input_path = input.path(), output_path = output.path();
  std::vector<const char*> args = {"ld.lld",
                                   "-shared",
                                   "--threads=1",
                                   "--build-id=none",
                                   "--hash-style=gnu",
                                   "--no-mmap-output-file",
                                   "--no-as-needed",
                                   "-z",
                                   "noexecstack",
                                   "-o",
                                   output_path.c_str(),
                                   input_path.c_str()};
  for (const std::string& arg : more) args.push_back(arg.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) return Internal("linking failed: {}", messages);
  if (!result.canRunAgain) return Internal("the linker is broken for this process: {}", messages);
  return output.Finish();
}

// Makes a shared object that is named libm and is empty, which is enough to make others need libm.
StatusOr<std::string> MakeLibmStub(std::string_view empty_object) {
  return Link(empty_object, {"-soname", "libm.so.6"});
}
}  // namespace

StatusOr<std::string> LinkSharedObject(std::string_view object, std::string_view empty_object) {
  static auto* stub = new std::string;
  if (stub->empty()) {
    KILN_ASSIGN_OR_RETURN(*stub, MakeLibmStub(empty_object));
  }
  MemoryFile libm;
  KILN_RETURN_IF_ERROR(libm.Write(*stub));
  return Link(object, {libm.path()});
}

}  // namespace kiln::codegen
