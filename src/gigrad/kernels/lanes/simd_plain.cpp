// The vector walks in plain C++.
#include "lanes/isa_plain.hpp"
#include "lanes/lanes_shares.hpp"
#include "lanes/lanes_walk.hpp"
#include "sweep/sweep_plain.hpp"
#include "sweep/sweep_corners.hpp"
#include "sweep/sweep_walk.hpp"

namespace gigrad {

extern const LaneKernel LANES_PLAIN;
constexpr LaneKernel LANES_PLAIN =
    lane_kernel<IsaPlain>("lanes", &Sweep<SweepPlain>::run, &SweepSharing::run, &LeafSharing::run);

}  // namespace gigrad
