// The files of the pages, which are a part of the program: scheduler/pages/web.
#pragma once

#include <span>
#include <string_view>

namespace kiln::scheduler {

struct WebFile {
  // "style.css"
  std::string_view name;
  std::string_view text;
};

// In the order of their names.
std::span<const WebFile> WebFiles();
// Returns null if there is no file of this name.
const WebFile* FindWebFile(std::string_view name);
// Returns the content type by the ending of the name: "text/css; charset=utf-8".
std::string_view ContentTypeOf(std::string_view name);

}  // namespace kiln::scheduler
