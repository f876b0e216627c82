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

Window Window::Uniform(std::vector<int64_t> kernel, int64_t stride, int64_t pad, int64_t dilation) {
  const std::vector<int64_t> strides(kernel.size(), stride), pads(kernel.size(), pad),
      dilations(kernel.size(), dilation);
  return {std::move(kernel), strides, pads, pads, dilations};
}

std::vector<int64_t> Window::Count(OpContext& c, const std::vector<int64_t>& image) const {
  const std::vector<std::string> letters = ImageLetters(static_cast<int>(dims()));
  std::vector<int64_t> count;
  for (size_t d = 0; d < dims(); ++d) {
    count.push_back(WindowExtent(c, letters[d], image[d], before[d] + after[d], kernel[d],
                                 strides[d], dilations[d]));
  }
  return count;
}

Padding Window::PaddingOf(Layout layout, double value) const {
  return {Arrange<int64_t>(layout, 0, 0, before), Arrange<int64_t>(layout, 0, 0, after), value};
}

std::vector<Axis> NamedAxes(std::span<const std::string_view> names,
                            const std::vector<int64_t>& extents) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < extents.size(); ++d) axes.push_back({std::string(names[d]), extents[d]});
  return axes;
}

Attrs LayoutFree(OpContext& c, const TensorRef& weight) {
  Attrs attrs;
  if (c.b.status().ok() && c.b.OperatorOf(weight)->is_placeholder())
    attrs.layout_free_placeholders = {weight.name()};
  return attrs;
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
