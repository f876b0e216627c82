#include "client/jobs/template_source.h"

#include "base/file/file.h"
#include "client/jobs/at_place.h"
#include "search/templates/shipped.h"
#include "search/templates/template.h"

namespace kiln::client {
namespace {

bool IsPath(std::string_view word) {
  return word.ends_with(".tmpl") || word.find('/') != std::string_view::npos;
}

}  // namespace

StatusOr<TemplateSource> LoadTemplate(const std::string& name_or_path, bool gpu) {
  if (!IsPath(name_or_path)) {
    KILN_ASSIGN_OR_RETURN(const search::ShippedTemplate* const shipped,
                          search::FindShippedTemplate(name_or_path, gpu));
    return TemplateSource{std::string(shipped->name), std::string(shipped->text),
                          std::string(shipped->op)};
  }
  TemplateSource source{.name = name_or_path, .text = {}, .op = {}};
  KILN_ASSIGN_OR_RETURN(source.text, ReadFile(name_or_path, search::kMaxTemplateBytes));
  const Status parsed = search::TemplateOfText(source.text).status();
  if (!parsed.ok()) return AtPlace(name_or_path, parsed);
  return source;
}

}  // namespace kiln::client
