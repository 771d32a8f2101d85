// The vector walks in plain C++.
#include "isa_plain.hpp"
#include "lanes_shares.hpp"
#include "lanes_walk.hpp"
#include "sweep_plain.hpp"
#include "sweep_corners.hpp"
#include "sweep_walk.hpp"

namespace gigrad {

extern const LaneKernel LANES_PLAIN;
constexpr LaneKernel LANES_PLAIN = lane_kernel<IsaPlain>("lanes", &Sweep<SweepPlain>::run, &SweepSharing::run, &LeafSharing::run);

}  // namespace gigrad
