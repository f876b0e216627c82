#include "search/templates/shipped/operators.h"

namespace kiln::search {
namespace {

constexpr std::string_view kDepthwiseNchwGpu = R"(template depthwise_conv2d_nchw for gpu

stage conv = reduction()
stage data = input(conv, 0)
stage weight = input(conv, 1)
n, c, y, x = axes(conv)

knob tile_c = split(c, outputs=4)
knob tile_y = split(y, outputs=4)
knob tile_x = split(x, outputs=4)
# Is what a block reads fetched into shared memory first?
knob in_shared = [true, false]
knob auto_unroll_max_step = [0, 256, 1500]

require tile_c[2] * tile_y[2] * tile_x[2] <= 1024

sums, out = accumulator(conv)
data_shared = cache_read(data, shared, sums)
weight_shared = cache_read(weight, shared, sums)
inline(data) if computed(data)
inline(data_shared, weight_shared) if !in_shared
inline_others()

n, c, y, x = axes(out)
bc, vc, tc, ci = split(c, tile_c)
by, vy, ty, yi = split(y, tile_y)
bx, vx, tx, xi = split(x, tile_x)
reorder(n, bc, by, bx, vc, vy, vx, tc, ty, tx, ci, yi, xi)
block = fuse(n, bc)
bind(block, blockIdx.z)
bind(by, blockIdx.y)
bind(bx, blockIdx.x)
bind(vc, vthread)
bind(vy, vthread)
bind(vx, vthread)
bind(tc, threadIdx.z)
bind(ty, threadIdx.y)
bind(tx, threadIdx.x)
compute_at(sums, tx)

n, c, y, x = axes(sums)
ry, rx = reduce_axes(sums)
reorder(ry, rx, n, c, y, x)
compute_at(data_shared, bx) if in_shared
compute_at(weight_shared, bx) if in_shared
fetch_by_threads(data_shared, 1, tile_c[2], tile_y[2], tile_x[2]) if in_shared
fetch_by_threads(weight_shared, 1, tile_c[2], tile_y[2], tile_x[2]) if in_shared

hint(out, auto_unroll_max_step, auto_unroll_max_step)
)";

constexpr std::string_view kDepthwiseNchwCpu = R"(template depthwise_conv2d_nchw for cpu

stage conv = reduction()
stage data = input(conv, 0)
n, c, y, x = axes(conv)

knob tile_c = split(c, outputs=2)
knob tile_y = split(y, outputs=2)
knob tile_x = split(x, outputs=2, policy=verbose, max_factor=64)
knob unroll_window = [true, false]
knob pad_at_root = [true, false]

require tile_y[1] * tile_x[1] <= 512

sums, out = accumulator(conv)
inline(data) if computed(data) && !pad_at_root
inline_others()

n, c, y, x = axes(out)
co, ci = split(c, tile_c)
yo, yi = split(y, tile_y)
xo, xi = split(x, tile_x)
reorder(n, co, yo, ci, xo, yi, xi)
tasks = fuse(n, co, yo)
parallel(tasks)
vectorize(xi)
compute_at(sums, xo)

n, c, y, x = axes(sums)
ry, rx = reduce_axes(sums)
reorder(n, c, ry, rx, y, x)
unroll(ry, rx) if unroll_window
unroll(y)
vectorize(x)
)";

constexpr std::string_view kDepthwiseNhwcGpu = R"(template depthwise_conv2d_nhwc for gpu

stage conv = reduction()
stage data = input(conv, 0)
n, y, x, c = axes(conv)

knob tile_y = split(y, outputs=3)
knob tile_x = split(x, outputs=3)
knob tile_c = split(c, outputs=3)
# Do neighbouring threads have neighbouring channels one by one, or vectors of them?
knob vector = [true, false]
knob auto_unroll_max_step = [0, 64, 512]

require tile_y[1] * tile_x[1] * tile_c[1] <= 1024

sums, out = accumulator(conv)
inline(data) if computed(data)
inline_others()

n, y, x, c = axes(out)
by, ty, yi = split(y, tile_y)
bx, tx, xi = split(x, tile_x)
bc, tc, ci = split(c, tile_c)
reorder(n, by, bx, bc, ty, tx, tc, yi, xi, ci)
block_y = fuse(n, by, bx)
bind(block_y, blockIdx.y)
bind(bc, blockIdx.x)
bind(ty, threadIdx.z)
bind(tx, threadIdx.y)
bind(tc, threadIdx.x)
vectorize(ci) if vector
compute_at(sums, tc)

n, y, x, c = axes(sums)
ry, rx = reduce_axes(sums)
reorder(ry, rx, n, y, x, c)
vectorize(c) if vector

hint(out, auto_unroll_max_step, auto_unroll_max_step)
)";

constexpr std::string_view kDepthwiseNhwcCpu = R"(template depthwise_conv2d_nhwc for cpu

stage conv = reduction()
stage data = input(conv, 0)
n, y, x, c = axes(conv)

knob tile_y = split(y, outputs=2)
knob tile_x = split(x, outputs=2)
knob tile_c = split(c, outputs=3, policy=verbose, max_factor=64)
knob unroll_window = [true, false]
knob pad_at_root = [true, false]

require tile_x[1] * tile_c[2] <= 512

sums, out = accumulator(conv)
inline(data) if computed(data) && !pad_at_root
inline_others()

n, y, x, c = axes(out)
yo, yi = split(y, tile_y)
xo, xi = split(x, tile_x)
co, cm, ci = split(c, tile_c)
reorder(n, yo, co, yi, xo, cm, xi, ci)
tasks = fuse(n, yo, co)
parallel(tasks)
vectorize(ci)
compute_at(sums, cm)

n, y, x, c = axes(sums)
ry, rx = reduce_axes(sums)
reorder(n, ry, rx, y, x, c)
unroll(ry, rx) if unroll_window
unroll(x)
vectorize(c)
)";

constexpr ShippedTemplate kTemplates[] = {
    {"depthwise_conv2d_nchw", true, "image tiles, in shared memory or not", "depthwise_conv2d_nchw",
     "b c i j", kDepthwiseNchwGpu},
    {"depthwise_conv2d_nchw", false, "vectors along the rows of the image", "depthwise_conv2d_nchw",
     "b c i j", kDepthwiseNchwCpu},
    {"depthwise_conv2d_nhwc", true, "threads along channels", "depthwise_conv2d_nhwc", "b i j c",
     kDepthwiseNhwcGpu},
    {"depthwise_conv2d_nhwc", false, "vectors along channels", "depthwise_conv2d_nhwc", "b i j c",
     kDepthwiseNhwcCpu},
};

}  // namespace

std::span<const ShippedTemplate> DepthwiseTemplates() { return kTemplates; }

}  // namespace kiln::search
