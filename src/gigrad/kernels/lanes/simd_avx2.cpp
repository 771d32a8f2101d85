// The vector walks for AVX2. Compiled with flags of its own, called only if the processor supports them.
#include "lanes/isa_avx2.hpp"
#include "lanes/lanes_shares.hpp"
#include "lanes/lanes_walk.hpp"
#include "sweep/sweep_avx2.hpp"
#include "sweep/sweep_corners.hpp"
#include "sweep/sweep_walk.hpp"

namespace gigrad {

extern const LaneKernel LANES_AVX2;
constexpr LaneKernel LANES_AVX2 =
    lane_kernel<IsaAvx2>("avx2", &Sweep<SweepAvx2>::run, &SweepSharing::run, &LeafSharing::run);

}  // namespace gigrad
