// Which template the user means, from a word of the command line: the name of one that Kiln ships,
// or a file.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::client {

struct TemplateSource {
  std::string name;  // for people: of the template, or the path
  std::string text;
  std::string op;  // of the library that a shipped one is for; "": it is a file
};

// A word with a slash or ending in .tmpl is a path. Errors are for the user: "mine.tmpl:3:14: ...",
// "no template con2d for a GPU, did you mean ...?".
StatusOr<TemplateSource> LoadTemplate(const std::string& name_or_path, bool gpu);

}  // namespace kiln::client
