#include "scheduler/pages/web_files.h"

namespace kiln::scheduler {
namespace {

constexpr WebFile kFiles[] = {
#include "scheduler/pages/web_files.inc"
};

}  // namespace

std::span<const WebFile> WebFiles() { return kFiles; }

const WebFile* FindWebFile(std::string_view name) {
  for (const WebFile& file : kFiles) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

std::string_view ContentTypeOf(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml; charset=utf-8";
  return "text/plain; charset=utf-8";
}

}  // namespace kiln::scheduler
