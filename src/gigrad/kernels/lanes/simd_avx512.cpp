// The vector walks for AVX-512. Compiled with flags of its own, called only if the processor supports them.
#include "lanes/isa_avx512.hpp"
#include "lanes/lanes_shares.hpp"
#include "lanes/lanes_walk.hpp"
#include "sweep/sweep_avx2.hpp"
#include "sweep/sweep_corners.hpp"
#include "sweep/sweep_walk.hpp"

namespace gigrad {

extern const LaneKernel LANES_AVX512;
constexpr LaneKernel LANES_AVX512 =
    lane_kernel<IsaAvx512>("avx512", &Sweep<SweepAvx2>::run, &SweepSharing::run, &LeafSharing::run);

}  // namespace gigrad
