// Finds the template that a word of the command line names: the name of a template that Kiln ships,
// or a file.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::client {

struct TemplateSource {
  // The template's name or path, for people.
  std::string name;
  std::string text;
  // Operator of a shipped template in the library; "": the template is a file.
  std::string op;
};

// A word with a slash or ending in .tmpl is a path. Errors are for the user: "mine.tmpl:3:14: ...",
// "no template con2d for a GPU, did you mean ...?".
StatusOr<TemplateSource> LoadTemplate(const std::string& name_or_path, bool gpu);

}  // namespace kiln::client
