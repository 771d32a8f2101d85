// The vector walks for NEON, which every 64-bit ARM has.
#include "lanes/isa_neon.hpp"
#include "lanes/lanes_shares.hpp"
#include "lanes/lanes_walk.hpp"
#include "sweep/sweep_corners.hpp"
#include "sweep/sweep_neon.hpp"
#include "sweep/sweep_walk.hpp"

namespace gigrad {

extern const LaneKernel LANES_NEON;
constexpr LaneKernel LANES_NEON =
    lane_kernel<IsaNeon>("neon", &Sweep<SweepNeon>::run, &SweepSharing::run, &LeafSharing::run);

}  // namespace gigrad
