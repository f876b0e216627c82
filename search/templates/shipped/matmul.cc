#include "search/templates/shipped/operators.h"

namespace kiln::search {
namespace {

constexpr std::string_view kDenseGpu = R"(template dense for gpu

stage product = reduction()
stage left = input(product, 0)
stage right = input(product, 1)
i, j = axes(product)
k = reduce_axes(product)

knob tile_i = split(i, outputs=4)
knob tile_j = split(j, outputs=4)
knob tile_k = split(k, outputs=3, filter=size[1] * size[2] <= 128)
knob vector = [1, 2, 4]
# Are the tiles of the next step fetched while this one is worked on?
knob ahead = [1, 2]
knob auto_unroll_max_step = [0, 64, 512, 1500]

require tile_i[2] * tile_j[2] <= 1024

sums, out = accumulator(product)
left_shared = cache_read(left, shared, sums)
right_shared = cache_read(right, shared, sums)
inline_others()

i, j = axes(out)
bi, vi, ti, ii = split(i, tile_i)
bj, vj, tj, ji = split(j, tile_j)
reorder(bi, bj, vi, vj, ti, tj, ii, ji)
bind(bi, blockIdx.y)
bind(bj, blockIdx.x)
bind(vi, vthread)
bind(vj, vthread)
bind(ti, threadIdx.y)
bind(tj, threadIdx.x)
compute_at(sums, tj)

i, j = axes(sums)
k = reduce_axes(sums)
ko, km, ki = split(k, tile_k)
reorder(ko, km, ki, i, j)
compute_at(left_shared, ko)
compute_at(right_shared, ko)
fetch_by_threads(left_shared, vector, tile_i[2], tile_j[2])
fetch_by_threads(right_shared, vector, tile_i[2], tile_j[2])
buffering(sums, ahead) if ahead > 1

hint(out, auto_unroll_max_step, auto_unroll_max_step)
)";

constexpr std::string_view kDenseCpu = R"(template dense for cpu

stage product = reduction()
i, j = axes(product)
k = reduce_axes(product)

knob tile_i = split(i, outputs=3)
knob tile_j = split(j, outputs=3, policy=verbose, max_factor=64)
knob tile_k = split(k, outputs=2)
# Do the rows of a tile or the steps of its reduction count faster?
knob order = reorder(ko, ki, i, policy=candidate, candidate=[[ko, ki, i], [ko, i, ki]])

require tile_i[2] * tile_j[2] <= 512

sums, out = accumulator(product)
inline_others()

i, j = axes(out)
io, im, ii = split(i, tile_i)
jo, jm, ji = split(j, tile_j)
reorder(io, jo, im, jm, ii, ji)
tasks = fuse(io, jo)
parallel(tasks)
vectorize(ji)
compute_at(sums, jm)

i, j = axes(sums)
k = reduce_axes(sums)
ko, ki = split(k, tile_k)
reorder(ko, ki, i, j)
reorder(order, ko, ki, i)
unroll(i)
vectorize(j)
)";

constexpr std::string_view kBatchMatmulGpu = R"(template batch_matmul for gpu

stage product = reduction()
stage left = input(product, 0)
stage right = input(product, 1)
b, i, j = axes(product)
k = reduce_axes(product)

knob tile_i = split(i, outputs=4)
knob tile_j = split(j, outputs=4)
knob tile_k = split(k, outputs=2, filter=size[1] <= 64)
knob vector = [1, 2, 4]
knob auto_unroll_max_step = [0, 64, 512, 1500]

require tile_i[2] * tile_j[2] <= 1024

sums, out = accumulator(product)
left_shared = cache_read(left, shared, sums)
right_shared = cache_read(right, shared, sums)
inline_others()

b, i, j = axes(out)
bi, vi, ti, ii = split(i, tile_i)
bj, vj, tj, ji = split(j, tile_j)
reorder(b, bi, bj, vi, vj, ti, tj, ii, ji)
bind(b, blockIdx.z)
bind(bi, blockIdx.y)
bind(bj, blockIdx.x)
bind(vi, vthread)
bind(vj, vthread)
bind(ti, threadIdx.y)
bind(tj, threadIdx.x)
compute_at(sums, tj)

b, i, j = axes(sums)
k = reduce_axes(sums)
ko, ki = split(k, tile_k)
reorder(ko, ki, b, i, j)
compute_at(left_shared, ko)
compute_at(right_shared, ko)
fetch_by_threads(left_shared, vector, tile_i[2], tile_j[2])
fetch_by_threads(right_shared, vector, tile_i[2], tile_j[2])

hint(out, auto_unroll_max_step, auto_unroll_max_step)
)";

constexpr std::string_view kBatchMatmulCpu = R"(template batch_matmul for cpu

stage product = reduction()
b, i, j = axes(product)
k = reduce_axes(product)

knob tile_i = split(i, outputs=3)
knob tile_j = split(j, outputs=3, policy=verbose, max_factor=64)
knob tile_k = split(k, outputs=2)

require tile_i[2] * tile_j[2] <= 512

sums, out = accumulator(product)
inline_others()

b, i, j = axes(out)
io, im, ii = split(i, tile_i)
jo, jm, ji = split(j, tile_j)
reorder(b, io, jo, im, jm, ii, ji)
tasks = fuse(b, io, jo)
parallel(tasks)
vectorize(ji)
compute_at(sums, jm)

b, i, j = axes(sums)
k = reduce_axes(sums)
ko, ki = split(k, tile_k)
reorder(b, ko, ki, i, j)
unroll(i)
vectorize(j)
)";

constexpr ShippedTemplate kTemplates[] = {
    {"dense", true, "tiles in shared memory, of matmul too", "dense", "i j", kDenseGpu},
    {"dense", false, "tiles in registers, of matmul too", "dense", "i j", kDenseCpu},
    {"batch_matmul", true, "tiles in shared memory", "batch_matmul", "b i j", kBatchMatmulGpu},
    {"batch_matmul", false, "tiles in registers", "batch_matmul", "b i j", kBatchMatmulCpu},
};

}  // namespace

std::span<const ShippedTemplate> MatmulTemplates() { return kTemplates; }

}  // namespace kiln::search
