// Spectra: discrete Fourier transforms as products with tables of cosines and sines.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "frontend/onnx/evaluate_known.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Returns [length, bins] of cos or sin of 2 pi t f / length.
Tensor Table(NodeContext& n, ir::Type type, int64_t length, int64_t bins, double (*f)(double)) {
  std::vector<double> values;
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t b = 0; b < bins; ++b) {
      // The product is reduced as a whole number first, so that long transforms lose no precision.
      const double turn = static_cast<double>(t * b % length) / static_cast<double>(length);
      values.push_back(f(2 * std::numbers::pi * turn));
    }
  }
  return n.Constant(type, {length, bins}, values);
}

// Returns the complex transform of the signals in the second last axis. The last axis is real or
// complex.
Tensor Transform(NodeContext& n, const Tensor& x, int64_t bins, bool inverse) {
  const int64_t last = x.rank() - 1, length = x.dim(last - 1);
  if (n.failed() || length * bins > kMaxKnownElements) {
    n.Unsupported("a transform of {} elements", length);
    return Tensor::Missing();
  }
  Shape axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(last)], axes[static_cast<size_t>(last) - 1]);
  // [..., 1 or 2, length].
  const Tensor rows = n.Transpose(x, axes);
  const Tensor cosines = n.Emit("matmul", {rows, Table(n, x.element(), length, bins, std::cos)});
  const Tensor sines = n.Emit("matmul", {rows, Table(n, x.element(), length, bins, std::sin)});
  const auto part = [&](const Tensor& t, int64_t i) { return n.SliceAxis(t, last - 1, i, 1); };
  // (a + i b) (cos - i sin), with + sin for the inverse.
  const Tensor turned = inverse ? n.Emit("negative", {sines}) : sines;
  Tensor real = part(cosines, 0), imaginary = n.Emit("negative", {part(turned, 0)});
  if (x.dim(last) == 2) {
    real = n.Add(real, part(turned, 1));
    imaginary = n.Add(imaginary, part(cosines, 1));
  }
  Tensor y = n.Transpose(n.Concat({real, imaginary}, last - 1), axes);
  if (inverse) y = n.Div(y, n.ScalarLike(y, static_cast<double>(length)));
  return y;
}

int64_t Bins(NodeContext& n, int64_t length) {
  return n.Int("onesided", 0) != 0 ? length / 2 + 1 : length;
}

// Returns the real signal of `length` elements whose spectrum is its own mirror image. x has the
// first half of the spectrum in the second last axis.
Tensor RealInverse(NodeContext& n, const Tensor& x, int64_t length) {
  const int64_t last = x.rank() - 1, bins = x.dim(last - 1);
  if (n.failed() || length * bins > kMaxKnownElements) {
    n.Unsupported("a transform of {} elements", length);
    return Tensor::Missing();
  }
  // All bins count twice, except those that are their own mirror images.
  const auto table = [&](double (*f)(double)) {
    std::vector<double> values;
    for (int64_t b = 0; b < bins; ++b) {
      const double times = b == 0 || 2 * b == length ? 1 : 2;
      for (int64_t t = 0; t < length; ++t) {
        const double turn = static_cast<double>(t * b % length) / static_cast<double>(length);
        values.push_back(times * f(2 * std::numbers::pi * turn) / static_cast<double>(length));
      }
    }
    return n.Constant(x.element(), {bins, length}, values);
  };
  Shape axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(last)], axes[static_cast<size_t>(last) - 1]);
  // [..., 1 or 2, bins].
  const Tensor rows = n.Transpose(x, axes);
  const auto part = [&](int64_t i, double (*f)(double)) {
    return n.Emit("matmul", {n.SliceAxis(rows, last - 1, i, 1), table(f)});
  };
  Tensor y = part(0, std::cos);
  if (x.dim(last) == 2) y = n.Sub(y, part(1, std::sin));
  return n.Transpose(y, axes);
}

// Cuts an axis or pads it with 0 to `length` elements.
Tensor OfLength(NodeContext& n, const Tensor& x, int64_t axis, int64_t length) {
  if (n.failed() || x.dim(axis) == length) return x;
  if (x.dim(axis) > length) return n.SliceAxis(x, axis, 0, length);
  Shape before(x.shape().size(), 0), after(x.shape().size(), 0);
  after[static_cast<size_t>(axis)] = length - x.dim(axis);
  return n.Emit("pad", {x}, {{"before", before}, {"after", after}});
}

// The axis is an attribute up to version 19, then an input.
void Dft(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 2);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  int64_t axis = n.version() < 20 ? n.Int("axis", 1) : n.has_input(2) ? n.KnownInt(2, "axis") : -2;
  axis = n.Axis(axis, x.rank());
  const bool inverse = n.Int("inverse", 0) != 0;
  const bool from_half = inverse && n.Int("onesided", 0) != 0;
  const int64_t length = n.has_input(1) ? n.KnownInt(1, "dft_length")
                         : from_half    ? 2 * (x.dim(axis) - 1)
                                        : x.dim(axis);
  if (n.failed()) return;
  if (axis == x.rank() - 1 || x.dim(x.rank() - 1) > 2 || length < 1 || length > kMaxKnownElements)
    return n.Invalid("{} elements of axis {} of {}", length, axis, TypeText(x.type));
  Shape axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(axis)], axes[axes.size() - 2]);
  const int64_t taken = from_half ? length / 2 + 1 : length;
  const Tensor moved = n.Transpose(OfLength(n, x, axis, taken), axes);
  n.SetOutput(n.Transpose(
      from_half ? RealInverse(n, moved, length) : Transform(n, moved, Bins(n, length), inverse),
      axes));
}

// Returns [batch, frames, length, 1 or 2]: windows of a signal [batch, time, 1 or 2] at even
// distances.
Tensor Frames(NodeContext& n, const Tensor& x, int64_t step, int64_t length) {
  const int64_t frames = 1 + (x.dim(1) - length) / step;
  if (frames > kMaxKnownElements / length) {
    n.Unsupported("{} windows of {}", frames, length);
    return x;
  }
  Shape ids;
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t t = 0; t < length; ++t) ids.push_back(f * step + t);
  return n.Gather(x, n.Constant({frames, length}, ids), 1);
}

int64_t FrameLength(NodeContext& n) {
  if (n.has_input(3)) return n.KnownInt(3, "frame_length");
  return n.has_input(2) ? n.input(2).dim(0) : n.input(0).dim(1);
}

void Stft(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 2, 3);
  const int64_t step = n.KnownInt(1, "frame_step");
  if (n.failed()) return;
  const Tensor &signal = n.input(0), &window = n.input(2);
  const Tensor x =
      signal.rank() == 2 ? n.Reshape(signal, {signal.dim(0), signal.dim(1), 1}) : signal;
  const int64_t length = FrameLength(n);
  if (n.failed()) return;
  if (step < 1 || length < 1 || length > x.dim(1) || (window.exists() && window.dim(0) > length))
    return n.Invalid("windows of {} each {} of {}", length, step, TypeText(x.type));
  Tensor y = Frames(n, x, step, length);
  if (window.exists()) {
    const Tensor whole = OfLength(n, n.Reshape(window, {window.num_elements()}), 0, length);
    y = n.Mul(y, n.Reshape(n.Cast(whole, x.element()), {length, 1}));
  }
  if (n.failed()) return;
  n.SetOutput(Transform(n, y, n.Int("onesided", 1) != 0 ? length / 2 + 1 : length, false));
}

// Returns the bins at the edges of bands that are evenly spaced on the mel scale, with ONNX's
// formula.
Shape MelEdges(NodeContext& n, int64_t bands, int64_t length, int64_t rate, double low,
               double high) {
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bands + 2);
  Shape edges;
  for (int64_t i = 0; i < bands + 2 && !n.failed(); ++i) {
    const double at = static_cast<double>(i) * step + mel(low);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    const double bin =
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    const bool fits = bin >= 0 && bin <= static_cast<double>(length / 2);
    if (!fits) n.Invalid("a frequency of {} hertz, at a rate of {}", hertz, rate);
    edges.push_back(fits ? static_cast<int64_t>(bin) : 0);
  }
  return edges;
}

// Returns [bins, bands]: triangles from one edge over the next edge to the one after it.
void MelWeights(NodeContext& n) {
  const int64_t bands = n.KnownInt(0, "num_mel_bins"), length = n.KnownInt(1, "dft_length"),
                rate = n.KnownInt(2, "sample_rate");
  const double low = n.KnownFloat(3, "lower_edge_hertz"),
               high = n.KnownFloat(4, "upper_edge_hertz");
  if (n.failed()) return;
  const int64_t bins = length / 2 + 1;
  if (bands < 1 || length < 1 || rate < 1 || bands > kMaxKnownElements / bins)
    return n.Invalid("{} bands of {} bins", bands, bins);
  const Shape edges = MelEdges(n, bands, length, rate, low, high);
  if (n.failed()) return;
  std::vector<double> weights(static_cast<size_t>(bins * bands), 0);
  for (int64_t i = 0; i < bands; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t left = edges[at], centre = edges[at + 1], right = edges[at + 2];
    const auto set = [&](int64_t bin, int64_t part, int64_t whole) {
      weights[static_cast<size_t>(bin * bands + i)] =
          whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
    };
    for (int64_t j = left; j <= centre; ++j) set(j, j - left, centre - left);
    for (int64_t j = centre; j < right; ++j) set(j, right - j, right - centre);
  }
  n.SetOutput(n.Constant(ir::kFloat32, {bins, bands}, weights));
}

}  // namespace

std::vector<Rule> SignalRules() {
  return {{"DFT", Dft}, {"STFT", Stft}, {"MelWeightMatrix", MelWeights}};
}

}  // namespace kiln::frontend
