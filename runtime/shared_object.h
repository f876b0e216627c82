// A shared object that is loaded from bytes without a file system, by a memfd and dlopen.
#pragma once

#include <memory>
#include <string_view>

#include "base/file/fd.h"
#include "base/status.h"

namespace kiln::runtime {

// Makes a memory file with these bytes, for Open.
StatusOr<UniqueFd> MakeProgramFile(std::string_view elf);

// Unloads the object when destroyed.
class SharedObject {
 public:
  // Loads an object. Undefined symbols are looked up now, not at the first call. InvalidArgument
  // with the loader's reason. The object's constructors run in this call, and a damaged ELF file
  // may crash the loader.
  static StatusOr<std::unique_ptr<SharedObject>> Load(std::string_view elf);
  // Takes the second of two steps, after MakeProgramFile. It opens files only for reading.
  static StatusOr<std::unique_ptr<SharedObject>> Open(const UniqueFd& file);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  // NotFound if the object does not export `name`.
  StatusOr<void*> Find(const char* name) const;

 private:
  explicit SharedObject(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace kiln::runtime
