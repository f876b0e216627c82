#include "compiler/dag/ops/image.h"

namespace kiln::dag {

std::vector<std::string> ImageLetters(int dims) {
  const std::vector<std::string> all = {"D", "H", "W"};
  return {all.end() - dims, all.end()};
}

std::string Layout::Name() const {
  std::string image;
  for (const std::string& letter : ImageLetters(dims)) image += static_cast<char>(letter[0] + 32);
  return channels_last ? "n" + image + "c" : "nc" + image;
}

std::string Layout::ShapeDoc() const {
  return fmt::format("{}",
                     fmt::join(Arrange<std::string>(*this, "N", "C", ImageLetters(dims)), ", "));
}

void AddExtents(std::vector<Parameter>& parameters, int dims, std::string_view prefix,
                std::string_view what) {
  for (const std::string& letter : ImageLetters(dims)) {
    const char* side = letter == "D" ? "depth" : letter == "H" ? "height" : "width";
    parameters.push_back(
        {.name = fmt::format("{}{}", prefix, letter), .doc = fmt::format("{} {}", what, side)});
  }
}

std::vector<Parameter> ImageParameters(int dims) {
  std::vector<Parameter> parameters = {{.name = "N", .doc = "batch"}};
  AddExtents(parameters, dims, "", "input");
  return parameters;
}

std::vector<int64_t> ReadExtents(OpContext& c, int dims, std::string_view prefix) {
  std::vector<int64_t> extents;
  for (const std::string& letter : ImageLetters(dims))
    extents.push_back(c.args[fmt::format("{}{}", prefix, letter)]);
  return extents;
}

}  // namespace kiln::dag
