#include "search/templates/shipped/operators.h"

namespace kiln::search {
namespace {

// The schedule of TVM's tutorial "Tuning High Performance Convolution on NVIDIA GPUs"
// (gallery/how_to/tune_with_autotvm/tune_conv2d_cuda.py, v0.8). unroll_explicit has no effect in
// Kiln, whose CUDA text always leaves unrolling to the compiler, but it makes the space equal to
// the tutorial's.
constexpr std::string_view kConv2dNchwDirectGpu = R"(template conv2d_nchw_direct for gpu

stage conv = reduction()
stage data = input(conv, 0)
stage weight = input(conv, 1)
n, f, y, x = axes(conv)
rc, ry, rx = reduce_axes(conv)

knob tile_f = split(f, outputs=4)
knob tile_y = split(y, outputs=4)
knob tile_x = split(x, outputs=4)
knob tile_rc = split(rc, outputs=3)
knob tile_ry = split(ry, outputs=3)
knob tile_rx = split(rx, outputs=3)
knob auto_unroll_max_step = [0, 512, 1500]
knob unroll_explicit = [0, 1]

require tile_f[2] * tile_y[2] * tile_x[2] <= 1024

# Sums in registers, tiles of what they read in shared memory and in registers.
sums, out = accumulator(conv)
data_shared = cache_read(data, shared, sums)
weight_shared = cache_read(weight, shared, sums)
data_local = cache_read(data_shared, local, sums)
weight_local = cache_read(weight_shared, local, sums)
inline(data) if computed(data)
inline_others()

# A block has a tile of the image, a thread some points of it.
n, f, y, x = axes(out)
bf, vf, tf, fi = split(f, tile_f)
by, vy, ty, yi = split(y, tile_y)
bx, vx, tx, xi = split(x, tile_x)
reorder(n, bf, by, bx, vf, vy, vx, tf, ty, tx, fi, yi, xi)
bf = fuse(n, bf)
bind(bf, blockIdx.z)
bind(by, blockIdx.y)
bind(bx, blockIdx.x)
bind(vf, vthread)
bind(vy, vthread)
bind(vx, vthread)
bind(tf, threadIdx.z)
bind(ty, threadIdx.y)
bind(tx, threadIdx.x)
compute_at(sums, tx)

n, f, y, x = axes(sums)
rc, ry, rx = reduce_axes(sums)
rco, rcm, rci = split(rc, tile_rc)
ryo, rym, ryi = split(ry, tile_ry)
rxo, rxm, rxi = split(rx, tile_rx)
reorder(rco, ryo, rxo, rcm, rym, rxm, rci, ryi, rxi, n, f, y, x)
compute_at(data_shared, rxo)
compute_at(weight_shared, rxo)
compute_at(data_local, rxm)
compute_at(weight_local, rxm)

# All threads fetch together.
a, b, c, d = axes(data_shared)
fetch = fuse(a, b, c, d)
tz, ty, tx, fetch = split_parts(fetch, tile_f[2], tile_y[2], tile_x[2])
bind(tz, threadIdx.z)
bind(ty, threadIdx.y)
bind(tx, threadIdx.x)
a, b, c, d = axes(weight_shared)
fetch = fuse(a, b, c, d)
tz, ty, tx, fetch = split_parts(fetch, tile_f[2], tile_y[2], tile_x[2])
bind(tz, threadIdx.z)
bind(ty, threadIdx.y)
bind(tx, threadIdx.x)

hint(out, auto_unroll_max_step, auto_unroll_max_step)
)";

constexpr std::string_view kConv2dNchwDirectCpu = R"(template conv2d_nchw_direct for cpu

stage conv = reduction()
stage data = input(conv, 0)
n, f, y, x = axes(conv)
rc, ry, rx = reduce_axes(conv)

knob tile_f = split(f, outputs=3)
knob tile_y = split(y, outputs=2)
knob tile_x = split(x, outputs=2, policy=verbose, filter=size[-1] <= 64)
knob tile_rc = split(rc, outputs=2)
# What is outside of the innermost tile: the channels of the reduction, or its window.
knob order = reorder(rco, ry, rx, rci, policy=candidate, candidate=[[rco, ry, rx, rci], [ry, rx, rco, rci], [rco, rci, ry, rx]])
knob unroll_window = [false, true]
# Is the padded image made as a whole first, or where it is read?
knob pad_at_root = [true, false]

require tile_f[2] * tile_y[1] * tile_x[1] <= 512

sums, out = accumulator(conv)
inline(data) if computed(data) && !pad_at_root
inline_others()

n, f, y, x = axes(out)
fo, fm, fi = split(f, tile_f)
yo, yi = split(y, tile_y)
xo, xi = split(x, tile_x)
reorder(n, fo, yo, fm, xo, fi, yi, xi)
tasks = fuse(n, fo, yo)
parallel(tasks)
vectorize(xi)
compute_at(sums, xo)

n, f, y, x = axes(sums)
rc, ry, rx = reduce_axes(sums)
rco, rci = split(rc, tile_rc)
reorder(n, rco, ry, rx, rci, f, y, x)
reorder(order, rco, ry, rx, rci)
unroll(ry, rx) if unroll_window
unroll(f, y)
vectorize(x)
)";

constexpr std::string_view kConv2dNhwcGpu = R"(template conv2d_nhwc for gpu

stage conv = reduction()
stage data = input(conv, 0)
stage weight = input(conv, 1)
n, y, x, f = axes(conv)
ry, rx, rc = reduce_axes(conv)

knob tile_y = split(y, outputs=3)
knob tile_x = split(x, outputs=3)
knob tile_f = split(f, outputs=4)
knob tile_rc = split(rc, outputs=2, filter=size[1] <= 64)
knob vector = [1, 2, 4]
knob auto_unroll_max_step = [0, 64, 512]

let threads = tile_y[1] * tile_x[1] * tile_f[2]
require threads <= 1024

sums, out = accumulator(conv)
data_shared = cache_read(data, shared, sums)
weight_shared = cache_read(weight, shared, sums)
inline(data) if computed(data)
inline_others()

n, y, x, f = axes(out)
by, ty, yi = split(y, tile_y)
bx, tx, xi = split(x, tile_x)
bf, vf, tf, fi = split(f, tile_f)
reorder(n, by, bx, bf, vf, ty, tx, tf, yi, xi, fi)
block_y = fuse(n, by, bx)
bind(block_y, blockIdx.y)
bind(bf, blockIdx.x)
bind(vf, vthread)
bind(ty, threadIdx.z)
bind(tx, threadIdx.y)
bind(tf, threadIdx.x)
compute_at(sums, tf)

n, y, x, f = axes(sums)
ry, rx, rc = reduce_axes(sums)
rco, rci = split(rc, tile_rc)
reorder(rco, ry, rx, rci, n, y, x, f)
compute_at(data_shared, rx)
compute_at(weight_shared, rx)

fetch_by_threads(data_shared, vector, tile_y[1], tile_x[1], tile_f[2])
fetch_by_threads(weight_shared, vector, tile_y[1], tile_x[1], tile_f[2])

hint(out, auto_unroll_max_step, auto_unroll_max_step)
)";

constexpr std::string_view kConv2dNhwcCpu = R"(template conv2d_nhwc for cpu

stage conv = reduction()
stage data = input(conv, 0)
n, y, x, f = axes(conv)
ry, rx, rc = reduce_axes(conv)

knob tile_y = split(y, outputs=2)
knob tile_x = split(x, outputs=3)
knob tile_f = split(f, outputs=3, policy=verbose, max_factor=64)
knob tile_rc = split(rc, outputs=2)
knob window_outside = [true, false]
knob pad_at_root = [true, false]

require tile_x[2] * tile_f[2] <= 512

sums, out = accumulator(conv)
inline(data) if computed(data) && !pad_at_root
inline_others()

n, y, x, f = axes(out)
yo, yi = split(y, tile_y)
xo, xm, xi = split(x, tile_x)
fo, fm, fi = split(f, tile_f)
reorder(n, yo, xo, fo, yi, xm, fm, xi, fi)
tasks = fuse(n, yo, xo, fo)
parallel(tasks)
vectorize(fi)
compute_at(sums, fm)

n, y, x, f = axes(sums)
ry, rx, rc = reduce_axes(sums)
rco, rci = split(rc, tile_rc)
reorder(n, rco, ry, rx, rci, y, x, f)
reorder(ry, rx, rco) if window_outside
unroll(x)
vectorize(f)
)";

constexpr ShippedTemplate kTemplates[] = {
    {"conv2d_nchw_direct", true, "autotvm's tutorial: tiles in shared memory and registers",
     "conv2d_nchw", "nn ff yy xx", kConv2dNchwDirectGpu},
    {"conv2d_nchw_direct", false, "tiles in registers, vectors along the rows of the image",
     "conv2d_nchw", "nn ff yy xx", kConv2dNchwDirectCpu},
    {"conv2d_nhwc", true, "tiles in shared memory, threads along channels", "conv2d_nhwc",
     "nn yy xx ff", kConv2dNhwcGpu},
    {"conv2d_nhwc", false, "tiles in registers, vectors along channels", "conv2d_nhwc",
     "nn yy xx ff", kConv2dNhwcCpu},
};

}  // namespace

std::span<const ShippedTemplate> Conv2dTemplates() { return kTemplates; }

}  // namespace kiln::search
